"""The facts of a cluster, kept current by watches."""
