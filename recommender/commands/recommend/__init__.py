"""`tidewatch-recommender recommend`: decides once, for the present cluster or under assumptions."""
