"""`tidewatch-recommender backtest`: its flags, the load that they name, and the report."""
