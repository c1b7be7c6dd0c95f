"""The leader's actions after a decision: it writes sizes, sends events, and ends writes in time."""
