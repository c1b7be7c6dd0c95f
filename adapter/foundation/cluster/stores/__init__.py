"""Where watches keep values."""
