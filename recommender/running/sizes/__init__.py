"""Cluster sizes: decisions in threads of their own, and the writers that carry the decisions out."""
