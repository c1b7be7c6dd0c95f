"""Usage of containers, as Prometheus knows it: read in slices, kept as histograms, and made into sizes."""
