"""The keeper of the one value that all requests are answered from."""
