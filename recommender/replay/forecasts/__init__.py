"""Forecasts of pod counts, made at each step of a replay from its past alone."""
