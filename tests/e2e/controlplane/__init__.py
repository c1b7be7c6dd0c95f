"""A real Kubernetes control plane on this machine: its programs, its network, and a stand-in for the kubelet."""
