"""`tidewatch-adapter doctor`."""
