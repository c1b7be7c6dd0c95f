"""`tidewatch-recommender run`: puts the recommender together, and runs it until it is stopped."""
