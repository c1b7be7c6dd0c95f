"""Answers "the value of metric M for objects X" from memory, with one query to Prometheus for many clients."""
