"""Keeps the one value that all requests are answered from, and the past of nodes on which it depends."""
