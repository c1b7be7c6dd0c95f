"""Sizes of node groups: written to Cluster API, or as the chunks of a CapacityBuffer."""
