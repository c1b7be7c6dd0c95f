"""Objects that are kept equal to those of the cluster by watches."""
