"""The requirements that nodes must meet for the claims and disks of pods."""
