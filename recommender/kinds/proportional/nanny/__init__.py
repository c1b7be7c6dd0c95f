"""What addon-resizer makes of a cluster's size: a base, an extra for each node, and when the difference matters."""
