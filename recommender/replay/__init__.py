"""The past of a cluster through policies of cluster size: what each would have cost, and who would have waited."""
