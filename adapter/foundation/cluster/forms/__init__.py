"""The parts of Kubernetes objects that are decoded."""
