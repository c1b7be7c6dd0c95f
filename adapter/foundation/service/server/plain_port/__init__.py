"""The plain port: health, metrics and what needs no TLS, in one thread of its own."""
