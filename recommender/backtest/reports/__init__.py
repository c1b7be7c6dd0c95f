"""Tables, documents and pictures of the results of a backtest."""
