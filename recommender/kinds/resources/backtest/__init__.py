"""Judges how well our requests and those of other recommenders would have fitted the following days (pure)."""
