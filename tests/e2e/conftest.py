"""Fixtures and hooks of the end-to-end suite. Without Go's tool chain its tests fail; they are not skipped.

`oracle` belongs to oracle/test_oracle.py. The code that starts a control plane is in `controlplane/`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import pytest

from tests.e2e import durations, toolchain
from tests.e2e.controlplane.fixtures import (
    add_marker,
    cluster,
    kubernetes_programs,
    namespace,
    pod_metrics,
    prometheus,
    pytest_runtest_call,
    pytest_runtest_makereport,
    pytest_runtest_setup,
    report_what_was_not_run,
    start_cluster,
)
from tests.e2e.metrics_apis.thanos import WITH_THANOS
from tests.e2e.oracle.asking import SOURCE, Oracle
from tests.e2e.support.figures import stated_in

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "cluster",
    "kubernetes_programs",
    "namespace",
    "pod_metrics",
    "prometheus",
    "pytest_runtest_call",
    "pytest_runtest_makereport",
    "pytest_runtest_setup",
    "start_cluster",
]

collect_ignore: Final = [] if WITH_THANOS in os.environ else ["metrics_apis/test_thanos.py"]
"""Thanos is built only on request; without it this module has nothing to test."""


@pytest.fixture(scope="session")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Oracle:
    """Build the oracle from its source: this takes seconds the first time, and then Go's cache has it."""
    folder: Path = tmp_path_factory.mktemp("oracle")
    return Oracle(toolchain.build(SOURCE, folder / "oracle"))


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and record durations if asked to, in the process that gets all reports."""
    add_marker(config)
    if durations.is_asked_for() and not hasattr(config, "workerinput"):
        config.pluginmanager.register(durations.Recorder(config.rootpath))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest modules first, so that workers that take whole modules end at about the same time."""
    order = durations.longest_first([item.path for item in items], durations.read_table())
    items[:] = [items[index] for index in order]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report what was measured, and what was not run."""
    if lines := list(stated_in(terminalreporter)):
        terminalreporter.section("figures")
        for line in lines:
            terminalreporter.write_line(line)
    report_what_was_not_run(terminalreporter)
