"""Objects of the kind Recommendation in a running recommender: their watch, their configuration, their statuses."""
