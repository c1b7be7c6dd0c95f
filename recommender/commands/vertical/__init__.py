"""The common parts of the drop-ins that resize containers: the size of the cluster, the patch, and the polls."""
