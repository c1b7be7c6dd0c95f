"""The load of a poll: observed, predicted by the models in use, and how late a decision knows it."""
