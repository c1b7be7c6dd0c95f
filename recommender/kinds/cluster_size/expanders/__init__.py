"""Expanders choose which of several node groups grows.

Each is a filter; a chain of them ends with a reproducible choice.
"""
