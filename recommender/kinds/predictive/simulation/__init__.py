"""The one simulation of capacity: from desired replicas to what serves, its shortage and its cost (pure)."""
