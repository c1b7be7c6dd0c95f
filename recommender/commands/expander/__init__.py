"""`tidewatch-recommender expander`: the gRPC expander of Cluster Autoscaler."""
