"""Suggestions for names that no metric has."""
