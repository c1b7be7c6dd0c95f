# Every target sets up what it needs in the checkout, without root and without installing anything into the system.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
python := .venv/bin/python
# Immediate if the environment is up to date; otherwise it is made.
with_prometheus = folder="$$(.ci/prometheus)"; export PATH="$$folder:$$PATH";
tests ?= tests
suite ?= tests/e2e
jobs ?= 2

.PHONY: help demo test lint format bench e2e lock environment clean

help: ## list the targets
	@grep -hE '^[a-z0-9]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

environment:
	@.ci/python-environment

demo: environment ## run a fleet, Prometheus, the adapter and an HPA on this machine, with a live view
	@$(with_prometheus) exec $(python) -m demo

test: environment ## run the tests (tests=tests/objects for a part)
	@$(with_prometheus) exec $(python) -m pytest -n $(jobs) --dist worksteal $(tests)

lint: environment ## check format, style, types, architecture, dependencies, dead code and the Dockerfile
	@$(python) -m ruff format --check .
	@$(python) -m ruff check .
	@$(python) -m mypy
	@.venv/bin/lint-imports --no-logo
	@.venv/bin/deptry .
	@$(python) -m vulture
	@.venv/bin/hadolint Dockerfile

format: environment ## run the formatter and the linter's safe fixes
	@$(python) -m ruff format .
	@$(python) -m ruff check --fix .

bench: environment ## measure every figure in the README
	@$(with_prometheus) exec $(python) -m benchmarks

e2e: environment ## test against a real control plane and Go's own libraries (suite=tests/e2e/test_oracle.py for a part)
	@$(with_prometheus) exec $(python) -m tests.e2e --workers $(jobs) $(suite)

lock: ## update the lock files from pyproject.toml (needs uv)
	@.ci/lock

clean: ## remove everything that the other targets made
	rm -rf .venv .prometheus .cache demo/out benchmarks/out .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
