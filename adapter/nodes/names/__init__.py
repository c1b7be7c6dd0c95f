"""From a series of an exporter to the Kubernetes node that it is about."""
