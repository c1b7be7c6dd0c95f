"""Recorded load through every policy, by the one simulation: what would have been short, and at which cost."""
