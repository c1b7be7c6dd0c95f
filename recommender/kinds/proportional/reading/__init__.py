"""Reads `proportional:` of the configuration file strictly, and reports everything that is wrong with it."""
