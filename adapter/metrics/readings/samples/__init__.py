"""Prometheus's answers as readings: which object each sample belongs to, and which values may be served."""
