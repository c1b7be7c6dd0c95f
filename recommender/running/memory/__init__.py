"""The memory of decisions: kept while the process runs, stored, and read by the next leader."""
