"""`tidewatch-recommender sizes`."""
