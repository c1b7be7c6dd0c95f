"""The load of predictive recommendations: its present, its past, and its forecasts."""
