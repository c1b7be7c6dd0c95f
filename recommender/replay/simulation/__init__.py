"""One policy on the recorded past: events, decisions, and what becomes of machines."""
