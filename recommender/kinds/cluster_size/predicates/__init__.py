"""The scheduler's filters on a working copy of the cluster: which nodes a pod may run on, and why not on the others."""
