"""Determines from whose series the load of a node is taken. Pure."""
