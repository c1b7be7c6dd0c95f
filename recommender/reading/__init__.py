"""Strict readers of values, shared by the readers of all kinds of recommendations (pure)."""
