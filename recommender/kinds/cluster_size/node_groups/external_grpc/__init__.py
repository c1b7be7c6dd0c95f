"""Node groups of a provider that speaks Cluster Autoscaler's gRPC protocol (`externalgrpc`)."""
