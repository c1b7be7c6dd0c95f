"""The metrics that exist: series are looked up, and the rules make metrics of them."""
