"""Pods that do not exist yet, of predicted replicas or of a reserve, so that nodes are ready before they arrive."""
