"""Runs the recommender: gathers inputs, polls, carries decisions out, and keeps the memory that outlives a process."""
