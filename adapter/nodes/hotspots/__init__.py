"""Nodes that are over their limits: for people, and for the descheduler."""
