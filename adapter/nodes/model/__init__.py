"""The values that the rooms of `nodes` hand to each other; all immutable."""
