"""Pages of `docs/reference`: flags, keys, metrics and messages, each read from the code that acts on it."""
