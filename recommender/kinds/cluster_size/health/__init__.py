"""Health of the cluster and of its groups: readiness, nodes on their way, back-off."""
