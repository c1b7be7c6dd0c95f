"""What the drop-ins that resize containers share: the size of the cluster, the patch, and the polls."""
