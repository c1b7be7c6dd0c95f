"""Node groups: from the configuration, Cluster API, labels or a plugin to the groups that a decision works with."""
