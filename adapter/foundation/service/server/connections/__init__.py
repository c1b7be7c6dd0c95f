"""Connections to clients: handshakes, heads, bodies, answers that clients have not read yet, and deadlines."""
