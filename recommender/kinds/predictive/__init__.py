"""Predicted load: forecasts, the choice among them, and the capacity that follows from them (pure)."""
