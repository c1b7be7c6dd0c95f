"""Whole objects of kinds that the cluster may not have, such as those of Cluster API."""
