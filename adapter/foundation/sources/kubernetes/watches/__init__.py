"""Objects in memory that watches keep equal to those of the cluster."""
