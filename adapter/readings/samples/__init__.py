"""Prometheus's answers as readings: whose value each sample is, and which values may be served."""
