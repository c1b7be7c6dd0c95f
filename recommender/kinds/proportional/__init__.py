"""Sizes in proportion to the cluster: linear, ladder, interpolated, as in cluster-proportional-autoscaler."""
