from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.complaints.harness import COMPLAINTS, SHORT_LOOK_BACK
from tests.support.serving import Adapter, Trust, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from demo.machine.prometheus import PrometheusProcess


@pytest.fixture(scope="session")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusProcess]:
    """Yield a Prometheus that is shared by all tests that leave it alone."""
    with COMPLAINTS.prometheus(tmp_path_factory.mktemp("prometheus")) as running:
        yield running


@pytest.fixture(scope="session")
def adapter(tmp_path_factory: pytest.TempPathFactory, trust: Trust, prometheus: PrometheusProcess) -> Iterator[Adapter]:
    """Yield an adapter that is shared by all tests that leave it as they found it."""
    folder = tmp_path_factory.mktemp("adapter")
    with COMPLAINTS.adapter(folder, trust, prometheus, SHORT_LOOK_BACK) as running:
        with running.caller() as caller:
            eventually(lambda: {"pods/found_requests", "pods/ratio"} <= caller.listed())
        yield running
