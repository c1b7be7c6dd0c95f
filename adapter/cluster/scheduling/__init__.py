"""What restricts where pods may run, beside their requests: constraints of pods, storage, workloads and budgets."""
