"""The policies that place pods with GPUs, and the arithmetic of what is left of the GPUs of a node."""
