"""Tries rules on a real Prometheus: what they would serve, and whether Prometheus accepts their queries."""
