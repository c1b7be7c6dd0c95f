"""The results of a replay: the verdict, and the report as text, as JSON and as a picture."""
