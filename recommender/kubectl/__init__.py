"""`kubectl tidewatch`: explains the state of an HPA, a workload or a pod, with the caller's own rights.

A plugin of kubectl is a program whose name begins with `kubectl-`. Everything is read through the API server: objects,
the metrics APIs, and, by the server's proxy, the recommender's page. Nothing is written.
"""
