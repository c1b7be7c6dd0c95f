"""Trials of rules on a real Prometheus: what they would serve, and whether it accepts their queries."""
