"""The commands behind the README's figures: each is `python -m benchmarks.NAME`; `make bench` runs all of them."""
