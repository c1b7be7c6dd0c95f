"""Limits over all nodes: the used and the remaining amounts, and the number of nodes that these allow."""
