"""The server: gunicorn's arbiter and worker, TLS, connections, and the plain port for health and metrics."""
