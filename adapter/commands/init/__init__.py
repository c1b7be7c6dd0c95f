"""`tidewatch-adapter init`."""
