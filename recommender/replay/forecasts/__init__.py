"""Forecasts of pod counts, made at each step of a replay only from the past of that step."""
