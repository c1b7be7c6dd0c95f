"""Limits on changes of a size: brakes, pauses, and the tolerance of an HPA (pure)."""
