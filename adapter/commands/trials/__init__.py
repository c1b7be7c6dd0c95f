"""What rules would serve, tried on a real Prometheus."""
