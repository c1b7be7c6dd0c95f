"""The kinds of recommendations, each in a folder of its own."""
