"""Usage of containers, as Prometheus knows it: read in slices, stored as histograms, and turned into sizes."""
