"""The forms in which a forecast is shown: JSON, table, metrics."""
