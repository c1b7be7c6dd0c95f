"""The common parts of the drop-ins for small programs: one process, its port, its start and its end."""
