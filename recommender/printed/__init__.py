"""Records as JSON, and as text for people."""
