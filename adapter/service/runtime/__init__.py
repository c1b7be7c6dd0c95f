"""What every process has beside its server: tasks, threads, logs, health checks and its own metrics."""
