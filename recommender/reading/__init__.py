"""Strict reading of values, for the readers of each kind of recommendation (pure)."""
