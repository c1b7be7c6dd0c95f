"""`tidewatch-adapter nodes`."""
