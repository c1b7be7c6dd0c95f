"""`tidewatch-recommender proportional`: cluster-proportional-autoscaler's command line."""
