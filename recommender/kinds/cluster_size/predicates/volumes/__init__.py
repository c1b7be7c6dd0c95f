"""The requirements that claims and disks of pods have on nodes."""
