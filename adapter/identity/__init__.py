"""Who asks, what they may, and what the process shows of itself: callers, rights, serving certificates."""
