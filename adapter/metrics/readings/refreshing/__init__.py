"""Sends the queries that are due, turns answers into readings, and checks plans while the program runs."""
