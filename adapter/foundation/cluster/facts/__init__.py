"""Turns decoded objects into values."""
