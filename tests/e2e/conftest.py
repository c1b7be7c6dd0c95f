"""Fixtures of the suite that needs Go's tool chain; without one its tests fail, they are not skipped.

`oracle` belongs to test_oracle.py. What stands up a control plane lives beside this file in `controlplane/`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e import toolchain
from tests.e2e.asking import SOURCE, Oracle
from tests.e2e.controlplane.fixtures import (
    cluster,
    kubernetes_programs,
    namespace,
    pod_metrics,
    prometheus,
    pytest_configure,
    pytest_runtest_call,
    pytest_runtest_makereport,
    pytest_runtest_setup,
    pytest_terminal_summary,
    start_cluster,
)

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "cluster",
    "kubernetes_programs",
    "namespace",
    "pod_metrics",
    "prometheus",
    "pytest_configure",
    "pytest_runtest_call",
    "pytest_runtest_makereport",
    "pytest_runtest_setup",
    "pytest_terminal_summary",
    "start_cluster",
]


@pytest.fixture(scope="session")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Oracle:
    """The oracle, built from its source: seconds the first time, then out of Go's cache."""
    folder: Path = tmp_path_factory.mktemp("oracle")
    return Oracle(toolchain.build(SOURCE, folder / "oracle"))
