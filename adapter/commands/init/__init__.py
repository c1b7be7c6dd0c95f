"""The command `init`, which writes rules and HPAs for what Prometheus holds."""
