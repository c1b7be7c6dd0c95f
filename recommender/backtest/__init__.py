"""Replays recorded load through every policy in one simulation: how much would have been short, and at which cost."""
