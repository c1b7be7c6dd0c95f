"""The only simulation of capacity: computes the replicas that serve, their shortage and their cost (pure)."""
