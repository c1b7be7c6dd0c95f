"""What a backtest shows: tables, documents and pictures of its results."""
