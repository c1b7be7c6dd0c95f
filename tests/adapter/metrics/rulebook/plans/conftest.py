"""A Prometheus, shared by all tests of a run, with the samples on which plans are tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.plan_samples import AskedPrometheus, prometheus_with_samples

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AskedPrometheus]:
    with prometheus_with_samples(tmp_path_factory.mktemp("samples"), seed=1) as running:
        yield running
