"""The answers: for an HPA, a workload, and a pod."""
