"""A serving process does not load the packages for forecasts, which would add some 100 MiB to each replica."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from tests.support.loaded_modules import SCIENTIFIC, LoadedModules
from tests.support.serving import Trust, eventually, listed, pod, running_adapter

if TYPE_CHECKING:
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess

RULES = """\
rules:
- seriesQuery: 'up{namespace!="",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)'
"""


def test_serve_does_not_load_numpy_or_other_scientific_packages(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess
) -> None:
    modules = LoadedModules(tmp_path / "modules")
    with running_adapter(
        tmp_path / "adapter",
        trust,
        prometheus_url=prometheus.url,
        rules=RULES,
        objects={"pods.json": listed(pod("web-0"))},
        environment=modules.environment,
        as_installed=True,
    ) as adapter:
        eventually(lambda: adapter.said("Prometheus answers"))
    loaded = modules.packages()
    assert {"adapter", "gunicorn", "prometheus_api_client"} <= loaded
    assert not loaded & SCIENTIFIC


def test_the_parent_of_the_nodes_worker_loads_only_what_it_needs() -> None:
    not_needed = {"numpy", "flask", "cryptography", "adapter.commands.nodes.worker"}
    assert not not_needed & modules_after("import adapter.commands.nodes.command")


def test_the_parent_of_the_worker_of_serve_loads_only_what_it_needs() -> None:
    not_needed = {"flask", "adapter.commands.serve.worker", "adapter.metrics.readings.readings"}
    assert not not_needed & modules_after("import adapter.commands.serve.command")


def test_nodes_without_certificates_loads_no_cryptography() -> None:
    assert "cryptography" not in modules_after("import adapter.commands.nodes.worker")


def modules_after(statement: str) -> set[str]:
    """Return the modules that a new process has loaded after a statement."""
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return set(done.stdout.split())
