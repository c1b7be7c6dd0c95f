"""Command lines, parsed as Go programs parse them."""
