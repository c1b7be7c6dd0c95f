"""`tidewatch-recommender backtest`: its flags, the load that they select, and the report."""
