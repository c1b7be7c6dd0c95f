"""The plain port: health, metrics and whatever else needs no TLS, served by a thread of its own."""
