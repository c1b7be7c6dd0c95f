"""Determines whose series a node's load is taken from. Pure."""
