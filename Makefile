# Every target sets up what it needs in the checkout: no root, nothing installed into the system.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
python := .venv/bin/python
# Puts Prometheus on the PATH; it is unpacked into the checkout if the machine has none.
with_prometheus = folder="$$(.ci/prometheus)"; export PATH="$$folder:$$PATH";
# Hundreds of processes of the tests import the same modules: whatever the machine sets, they are compiled once.
export PYTHONDONTWRITEBYTECODE :=
# The theme's notice about its end of life is the maintainers' business.
site = NO_MKDOCS_2_WARNING=1 $(python) -m mkdocs build --site-dir
tests ?= tests
suite ?= tests/e2e
jobs ?= 2
# The modules of `make e2e` that read a size from the environment.
sized := $(addprefix tests/e2e/,scheduling/test_scheduling_filters.py cluster_size/test_cluster_size_scheduler.py \
  nodes/test_node_scheduling.py recommender/test_recommender_run.py oracle/test_oracle.py)
# More than cores: much of the tests' time is waiting for other processes.
workers ?= 6

.PHONY: help demo test again lint format docs bench e2e e2e-scale release lock environment clean

help: ## what there is to make
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

environment:
	@.ci/python-environment

demo: environment ## the main job on this machine, with a live view: a fleet, Prometheus, the adapter, an HPA
	@$(with_prometheus) exec $(python) -m demo

test: environment ## run the tests (tests=tests/adapter/foundation/objects for a part)
	@$(with_prometheus) exec $(python) -m pytest -n $(workers) --dist worksteal $(tests)

again: environment ## the tests that failed last time, one after another (tests=tests/e2e for those of make e2e)
	@$(python) -m pytest $(if $(filter tests/e2e%,$(tests)),-o cache_dir=.cache/pytest-e2e) --cache-show 'cache/lastfailed' -qq
	@$(with_prometheus) exec $(python) -m $(if $(filter tests/e2e%,$(tests)),tests.e2e --workers 1,pytest -n 0) -v \
	  --last-failed --last-failed-no-failures none $(tests)

lint: environment ## format, lint, types, architecture, dependencies, dead code, Dockerfile, the site of the documentation
	@$(python) -m ruff format --check .
	@$(python) -m ruff check .
	@$(python) -m mypy
	@.venv/bin/lint-imports --no-logo
	@.venv/bin/deptry .
	@$(python) -m vulture
	@.venv/bin/hadolint Dockerfile
	@$(site) .cache/site-of-lint

format: environment ## the formatter and the linter's safe repairs
	@$(python) -m ruff format .
	@$(python) -m ruff check --fix .

docs: environment ## the pages that are made from the code, and all pages as a site, into docs/site/
	@$(python) -m docs.generate
	@$(site) .cache/site
	@rm -rf docs/site && mv .cache/site docs/site

bench: environment ## every figure of the README
	@$(with_prometheus) exec $(python) -m benchmarks

e2e: environment ## against a real control plane and Go's own libraries (suite=tests/e2e/oracle/test_oracle.py for a part; thanos=1: with Thanos)
	@# The tests have a network of their own, from which no package can be installed.
	@.ci/python-environment .cache/release requirements-release.lock
	@$(with_prometheus) exec $(python) -m tests.e2e --workers $(jobs) $(if $(thanos),--thanos) $(suite)

# As large as whoever runs it has time for: make e2e-scale SCHEDULED_PODS=2000
e2e-scale: export SCHEDULING_CLUSTERS ?= 5000
e2e-scale: export SIZED_CLUSTERS ?= 300
e2e-scale: export SIZED_SCALE_UPS ?= 50
e2e-scale: export SCHEDULED_PODS ?= 500
e2e-scale: export RECOMMENDER_KILLS ?= 100
e2e-scale: export ORACLE_FACTOR ?= 5
e2e-scale: environment ## the part of make e2e whose size can be chosen, with many more clusters, pods and kills; takes an hour
	@.ci/python-environment .cache/release requirements-release.lock
	@$(with_prometheus) exec $(python) -m tests.e2e --workers $(jobs) $(sized)

release: ## wheel, chart, manifests, locks, bill of materials and checksums of this version, into dist/
	@.ci/release

lock: ## the locks, from pyproject.toml (needs uv)
	@.ci/lock

clean: ## what the other targets made
	rm -rf .venv .prometheus .cache docs/site demo/out benchmarks/out .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
