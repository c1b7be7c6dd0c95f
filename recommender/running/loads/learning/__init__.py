"""Learning in child processes: which model learns next, for which targets, and by which rules."""
