"""The load at a poll: its observation, its prediction by the models in use, and the delay until a decision knows it."""
