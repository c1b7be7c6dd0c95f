"""Where recommendations go: metrics, scale calls, events."""
