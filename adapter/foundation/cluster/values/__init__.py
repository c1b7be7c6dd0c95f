"""What is known of a cluster, as immutable values."""
