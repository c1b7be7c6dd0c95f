"""The policies that read the measured load of nodes."""
