"""The page for people and the JSON for programs."""
