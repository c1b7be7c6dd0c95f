"""The past of a cluster: its nodes and pods over time, as values, as events, and as a log of bounded size."""
