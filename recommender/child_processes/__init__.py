"""Heavy work in spawned processes with limits of their own."""
