"""kube-scheduler's HTTP extender: filter and scores, and the same scores for people."""
