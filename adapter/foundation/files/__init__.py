"""Files that are read, followed while they change, and replaced as a whole."""
