"""The facts of a cluster from files, which are read once or followed."""
