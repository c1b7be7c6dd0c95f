"""The arithmetic of addon-resizer: a base, an extra for each node, and which differences matter."""
