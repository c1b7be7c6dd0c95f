"""An immutable snapshot of the cluster: its nodes, its HPAs, and how many objects a selector matches."""
