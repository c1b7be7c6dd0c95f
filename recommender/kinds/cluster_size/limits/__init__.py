"""Limits over all nodes: what is used, what is left, and how many nodes that allows."""
