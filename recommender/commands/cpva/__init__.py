"""`tidewatch-recommender cpva`: cluster-proportional-vertical-autoscaler's command line."""
