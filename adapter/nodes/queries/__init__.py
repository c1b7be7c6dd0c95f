"""What is asked of Prometheus for the load of nodes, and asking it."""
