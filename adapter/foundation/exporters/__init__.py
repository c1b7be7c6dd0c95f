"""What exporters publish that follows the load, recognised in what a Prometheus holds; both `init` commands use it."""
