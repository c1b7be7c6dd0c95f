"""Strict YAML that remembers in which line everything stood."""
