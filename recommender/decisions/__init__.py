"""The record of a decision, the constraints that limit the value, and the pure loop that makes the decision."""
