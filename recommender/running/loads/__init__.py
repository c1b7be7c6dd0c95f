"""The load of predictive recommendations: its current value, its history, and its forecasts."""
