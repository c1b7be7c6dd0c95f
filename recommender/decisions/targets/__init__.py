"""What is known of each target: its present state, who owns its size, and what is to be doubted (pure)."""
