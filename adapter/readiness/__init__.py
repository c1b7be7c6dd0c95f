"""The readiness sidecar of a pod with a limit of connections: reads one metric, and answers the kubelet's probe."""
