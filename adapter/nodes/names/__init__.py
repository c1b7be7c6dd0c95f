"""Turns a series of an exporter into the Kubernetes node that it is about."""
