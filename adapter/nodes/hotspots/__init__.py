"""Nodes that are over their limits, shown to people and to the descheduler."""
