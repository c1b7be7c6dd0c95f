"""Connections to clients: handshakes, heads, bodies, answers that they have not read yet, and deadlines."""
