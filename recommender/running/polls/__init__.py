"""The loop of polls: inputs are gathered, recommendations decided, and who leads acts."""
