"""What a poll looks up: its plan, the state of each target, and all of it within one deadline."""
