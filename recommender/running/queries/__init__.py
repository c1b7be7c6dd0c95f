"""The values of PromQL expressions, and how old their samples are."""
