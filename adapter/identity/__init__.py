"""Who asks, and what the process shows of itself: front proxy, callers, serving certificates."""
