"""What the demo, the tests and the benchmarks need of this machine: processes, ports, certificates, Prometheus."""
