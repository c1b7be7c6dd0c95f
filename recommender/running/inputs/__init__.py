"""The look-ups of a poll: their plan, the state of each target, and one deadline for all of them."""
