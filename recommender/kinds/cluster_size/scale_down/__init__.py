"""Decides which nodes are removed, when, and why the others stay: Cluster Autoscaler's scale-down as pure functions."""
