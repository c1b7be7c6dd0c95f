"""Turns a forecast into a size (pure)."""
