"""`tidewatch-recommender recommend`: decides once, for the current cluster or under assumptions."""
