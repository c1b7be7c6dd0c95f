"""The common parts of the drop-ins for small programs: the single process, its port, its start and its end."""
