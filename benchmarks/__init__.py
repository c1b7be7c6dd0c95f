"""What the README's figures come from. Each benchmark is `python -m benchmarks.NAME`; `make bench` runs them all."""
