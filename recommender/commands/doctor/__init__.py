"""`tidewatch-recommender doctor`: checks an installation, and says how to fix each fault."""
