"""`tidewatch-recommender recommend`."""
