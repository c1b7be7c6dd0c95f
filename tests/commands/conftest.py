from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.commands.world import OBJECTS, RULES, prometheus_of_the_world
from tests.support.serving import Adapter, Trust, eventually, running_adapter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from demo.machine.prometheus import PrometheusProcess


@pytest.fixture(scope="session")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusProcess]:
    """One for all tests that leave it alone."""
    with prometheus_of_the_world(tmp_path_factory.mktemp("prometheus")) as running:
        yield running


@pytest.fixture(scope="session")
def adapter(tmp_path_factory: pytest.TempPathFactory, trust: Trust, prometheus: PrometheusProcess) -> Iterator[Adapter]:
    """One for all tests that leave it as they found it."""
    folder = tmp_path_factory.mktemp("adapter")
    with running_adapter(
        folder, trust, "--refresh-interval=1s", prometheus_url=prometheus.url, rules=RULES, objects=OBJECTS
    ) as running:
        eventually(lambda: running.plain("/readyz").status == 200)
        yield running
