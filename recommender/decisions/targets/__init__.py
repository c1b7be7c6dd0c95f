"""Facts about each target: its current state, who owns its size, and which facts are doubtful (pure)."""
