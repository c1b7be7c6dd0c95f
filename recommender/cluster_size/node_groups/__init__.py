"""The contract of plugins: its types, and its test."""
