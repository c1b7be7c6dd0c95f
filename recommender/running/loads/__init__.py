"""The load of predictive recommendations: its present value, its history, and its forecasts."""
