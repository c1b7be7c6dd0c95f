"""`tidewatch-adapter serve`."""
