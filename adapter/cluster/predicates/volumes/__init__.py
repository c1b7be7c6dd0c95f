"""What the claims and disks of pods demand of nodes."""
