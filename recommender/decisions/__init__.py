"""The record of a decision, the constraints that limit it, and the pure loop that makes it."""
