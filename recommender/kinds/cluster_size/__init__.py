"""Sizes of node groups and removals of nodes, with reasons: Cluster Autoscaler's decisions as pure functions."""
