"""The command `nodes`, which serves the load of nodes to schedulers and the descheduler."""
