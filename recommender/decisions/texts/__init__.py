"""Values, times and rows as text."""
