"""Election of the one replica that may write, by a Lease."""
