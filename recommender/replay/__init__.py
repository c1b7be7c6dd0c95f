"""Replays the past of a cluster through policies of cluster size: the cost of each, and how long pods would wait."""
