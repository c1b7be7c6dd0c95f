"""Chooses the model in use by comparing each model's record with plain headroom at equal cost (pure)."""
