"""Strict YAML in which every value knows its line."""
