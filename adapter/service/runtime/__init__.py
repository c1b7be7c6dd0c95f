"""What runs in a process beside its server: tasks, threads, logs, health, own metrics."""
