"""Reads `predictive:` of the configuration file strictly, and reports all problems."""
