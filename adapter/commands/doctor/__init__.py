"""The command `doctor`, which checks an installation for common faults."""
