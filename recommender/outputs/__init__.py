"""The outputs of recommendations: metrics, scale calls, events."""
