"""`tidewatch-recommender replay`: its flags, the past that they name, and the report."""
