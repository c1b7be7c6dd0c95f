"""The models: each is fitted to a history and forecasts the load at its horizon (pure)."""
