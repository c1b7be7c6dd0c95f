"""Processes, ports, certificates and a real Prometheus for the demo, the tests and the benchmarks."""
