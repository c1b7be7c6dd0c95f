"""`tidewatch-recommender init`."""
