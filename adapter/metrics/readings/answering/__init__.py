"""Answers requests from the readings in memory; only a first reading is waited for."""
