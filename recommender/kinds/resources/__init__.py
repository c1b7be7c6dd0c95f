"""Requests of containers from their usage (pure)."""
