"""The forms in which a cluster size recommendation is shown: JSON, table, metrics, events."""
