"""`tidewatch-recommender sizes`: prints the requests that containers should have, from their usage."""
