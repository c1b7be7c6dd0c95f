"""Chooses the model in use: each one is judged by its own record, compared with plain headroom at equal cost (pure)."""
