"""Determines how loaded nodes are, and where a pod fits best: windows of utilisation, and scores made from them."""
