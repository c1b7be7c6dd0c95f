"""How a forecast is shown: JSON, table, metrics."""
