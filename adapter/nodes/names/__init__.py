"""Finds the Kubernetes node that a series of an exporter describes."""
