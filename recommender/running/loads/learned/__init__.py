"""The results of learning for each target, their storage, and the tasks that models are given."""
