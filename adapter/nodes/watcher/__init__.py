"""Answers to load-watcher's clients, `/nodes/unmapped`, and node metrics, all prepared once per refresh."""
