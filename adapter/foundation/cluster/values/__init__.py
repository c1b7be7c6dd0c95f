"""The facts of a cluster, as immutable values."""
