"""The load of a poll: observed, predicted by the models in use, and the delay with which a decision knows it."""
