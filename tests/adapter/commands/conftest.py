from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.adapter.commands.harness import SHOP
from tests.support.serving import Adapter, Trust, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from demo.machine.prometheus import PrometheusProcess


@pytest.fixture(scope="session")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusProcess]:
    """Yield a Prometheus that is shared by all tests that leave it alone."""
    with SHOP.prometheus(tmp_path_factory.mktemp("prometheus")) as running:
        yield running


@pytest.fixture(scope="session")
def adapter(tmp_path_factory: pytest.TempPathFactory, trust: Trust, prometheus: PrometheusProcess) -> Iterator[Adapter]:
    """Yield the program as a user starts it, shared by all tests that leave it as they found it."""
    folder = tmp_path_factory.mktemp("adapter")
    with SHOP.adapter(folder, trust, prometheus, "--refresh-interval=1s", as_installed=True) as running:
        eventually(lambda: running.plain("/readyz").status == 200)
        yield running
