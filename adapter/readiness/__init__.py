"""The readiness sidecar of a pod with a connection limit. It reads one metric and answers probes of the kubelet."""
