"""Chooses the model in use: each one is judged by its own record, beside plain headroom at equal cost (pure)."""
