"""The loop of polls: gathers inputs, decides recommendations, and acts if this process leads."""
