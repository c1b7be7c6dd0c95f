"""Which queries are asked, for whom, when, and how widely."""
