"""Replays the past of a cluster with several size policies: what each costs, and how long pods would wait with it."""
