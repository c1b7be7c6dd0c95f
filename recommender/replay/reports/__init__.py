"""What a replay found: the verdict, and the report as text, as JSON and as a picture."""
