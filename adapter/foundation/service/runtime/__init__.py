"""The parts of every process besides its server: tasks, threads, logs, health checks and its own metrics."""
