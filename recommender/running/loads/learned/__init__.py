"""What models have learned of each target, where it is stored, and the tasks that models are given."""
