"""`tidewatch-recommender replay`: its flags, the past that they select, and the report."""
