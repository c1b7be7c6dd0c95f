"""Requests of containers from what they used (pure)."""
