"""Answers for load-watcher's clients, `/nodes/unmapped`, and the metrics of nodes, prepared once per refresh."""
