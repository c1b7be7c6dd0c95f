"""How requests would have fitted the days after them: ours, and those of other recommenders (pure)."""
