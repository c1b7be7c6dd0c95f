"""Pods and the objects that select them: what is decoded of them, their values, and where watches keep them."""
