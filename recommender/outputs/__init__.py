"""The outputs of recommendations: metrics, scale calls, resizes of containers, and events."""
