"""Judges how well requests would have fitted the following days: ours, and those of other recommenders (pure)."""
