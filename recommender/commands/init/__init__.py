"""`tidewatch-recommender init`: writes a configuration from the facts in Prometheus and the cluster."""
