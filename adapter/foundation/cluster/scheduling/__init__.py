"""Restrictions on where pods may run besides their requests: constraints of pods, storage, workloads and budgets."""
