"""The requirements of pods' claims and disks on nodes."""
