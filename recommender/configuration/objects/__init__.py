"""Recommendations that are objects of the cluster: their settings, how they are read, and their schema."""
