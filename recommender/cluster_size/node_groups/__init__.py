"""The contract of node group plugins: its types, and its test."""
