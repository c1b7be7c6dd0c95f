"""Keeps rules in force when a changed file breaks them."""
