"""`tidewatch-recommender doctor`."""
