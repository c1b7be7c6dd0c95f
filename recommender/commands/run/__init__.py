"""`tidewatch-recommender run`."""
