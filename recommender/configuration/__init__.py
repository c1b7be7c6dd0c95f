"""The recommender's configuration: its values, and the strict reader of its file."""
