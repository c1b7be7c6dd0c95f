"""Simulates one policy on the recorded past: the events, the decisions, and what happens to machines."""
