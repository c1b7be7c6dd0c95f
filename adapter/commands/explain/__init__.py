"""`tidewatch-adapter explain`."""
