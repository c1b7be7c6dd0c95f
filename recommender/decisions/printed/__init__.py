"""How the answer of a cluster size recommendation is printed: as JSON, as a table, as one line."""
