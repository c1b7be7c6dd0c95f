"""Balancing: which groups are alike, and how new nodes are spread over them."""
