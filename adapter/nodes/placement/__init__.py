"""From the state of the cluster to columns: sums over pods, recently bound pods, zones, GPUs; and the pod to place."""
