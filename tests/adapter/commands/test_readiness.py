"""A process is ready once it knows its metrics, so that a rolling update loses none, or after some time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.commands.serve.worker import metrics_probe
from tests.adapter.commands.harness import SHOP
from tests.support.serving import Trust, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess


@pytest.fixture
def own_prometheus(tmp_path: Path) -> Iterator[PrometheusProcess]:
    """Yield a Prometheus that the test may pause."""
    with SHOP.prometheus(tmp_path / "prometheus") as running:
        yield running


def test_readiness_waits_for_the_series_of_all_rules_but_not_for_long() -> None:
    now, looked_up = 100.0, False
    probe = metrics_probe(lambda: looked_up, lambda: now)

    assert probe() == "series have not been looked up yet"
    looked_up = True
    assert probe() is None
    looked_up, now = False, 100.5
    assert probe() is None, "readiness must not hang on Prometheus"


def test_the_adapter_becomes_ready_while_prometheus_hangs(
    tmp_path: Path, trust: Trust, own_prometheus: PrometheusProcess
) -> None:
    own_prometheus.pause()
    with SHOP.adapter(tmp_path, trust, own_prometheus) as adapter:
        eventually(lambda: adapter.plain("/readyz").status == 200)
    own_prometheus.resume()
