"""Sizes in proportion to the cluster: linear, ladder, interpolated, as cluster-proportional-autoscaler has them."""
