"""The values that the folders of `nodes` exchange; all immutable."""
