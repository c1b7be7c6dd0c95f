"""Builds and sends the queries for the load of nodes."""
