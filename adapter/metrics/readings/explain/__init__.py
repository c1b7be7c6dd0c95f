"""Explains why a metric has a value, or has none."""
