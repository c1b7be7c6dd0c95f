"""Scale-up: which groups grow, and by how many nodes, so that pending pods have a place."""
