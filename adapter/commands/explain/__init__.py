"""The command `explain`, which says why a metric has, or lacks, a value."""
