"""Command lines as Go's programs read them."""
