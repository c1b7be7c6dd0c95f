"""Reads `clusterSize:` of the configuration file."""
