"""The command `serve`, which serves the metrics APIs from Prometheus."""
