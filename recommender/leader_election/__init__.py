"""Elects the replica that may write, by means of a Lease."""
