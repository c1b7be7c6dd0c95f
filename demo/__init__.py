"""A day of load on one machine: real websocket servers and connections, Prometheus, the adapter and an HPA loop."""
