"""What the drop-ins for small programs share: one process, its port, its start and its end."""
