"""Replays recorded load through every policy in one simulation, to measure shortage and cost."""
