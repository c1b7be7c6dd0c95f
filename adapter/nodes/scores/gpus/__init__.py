"""The policies that place pods with GPUs, and the arithmetic of the GPU capacity that is left on a node."""
