"""How many nodes, of which group, and which may go, with reasons: Cluster Autoscaler's decisions as pure functions."""
