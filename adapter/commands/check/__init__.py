"""`tidewatch-adapter check`."""
