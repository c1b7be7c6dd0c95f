"""Recorded load: files, range queries and their cache, and a generated example."""
