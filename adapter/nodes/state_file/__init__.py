"""The state file with the samples of nodes, from which windows are served after a restart until Prometheus answers."""
