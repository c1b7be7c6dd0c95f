"""The facts of a cluster by watch."""
