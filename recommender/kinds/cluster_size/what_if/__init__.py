"""What-if questions: the cluster as it would be with more or fewer pods, or without some nodes."""
