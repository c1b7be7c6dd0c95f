"""The state file of the samples of nodes, so that a restart has windows before Prometheus has answered."""
