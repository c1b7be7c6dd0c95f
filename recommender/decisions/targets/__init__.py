"""Facts about each target: its present state, who owns its size, and which facts are doubtful (pure)."""
