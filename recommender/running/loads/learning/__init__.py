"""Models learn in child processes: which one next, for which targets, and by which rules."""
