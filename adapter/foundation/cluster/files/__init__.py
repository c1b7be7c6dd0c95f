"""The same facts from files, read once or followed."""
