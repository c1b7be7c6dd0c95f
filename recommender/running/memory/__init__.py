"""What decisions remember: kept while the process runs, stored, and read by the next leader."""
