"""The HTTP extender for kube-scheduler: the filter, the scores, and the same scores for people."""
