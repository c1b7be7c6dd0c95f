"""Metrics of known exporters that follow the load, found in a Prometheus; both `init` commands use them."""
