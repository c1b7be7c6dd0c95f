"""The modes: each is one typed function from counts and parameters to steps, in a file of its own."""
