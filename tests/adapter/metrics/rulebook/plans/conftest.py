"""A Prometheus with the samples that plans are tried on, for all tests of a run."""

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
