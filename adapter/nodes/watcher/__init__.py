"""What load-watcher's clients read, `/nodes/unmapped`, and the metrics of nodes: prepared once a refresh."""
