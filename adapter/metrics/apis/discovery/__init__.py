"""Discovery: groups, versions and lists of metrics."""
