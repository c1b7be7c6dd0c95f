"""Stores in which watches keep values."""
