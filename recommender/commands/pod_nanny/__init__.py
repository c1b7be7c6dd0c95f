"""`tidewatch-recommender pod-nanny`: addon-resizer's command line."""
