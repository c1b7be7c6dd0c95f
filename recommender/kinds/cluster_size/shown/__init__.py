"""How the answer of a cluster size recommendation is shown: JSON, table, metrics, events."""
