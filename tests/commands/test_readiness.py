"""A process is ready when it knows its metrics, so that a rolling update loses none; and soon in any case."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.commands.world import OBJECTS, RULES, prometheus_of_the_world
from tests.support.serving import Adapter, Trust, eventually, running_adapter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess


@pytest.fixture
def own_prometheus(tmp_path: Path) -> Iterator[PrometheusProcess]:
    """One that the test may harm."""
    with prometheus_of_the_world(tmp_path / "prometheus") as running:
        yield running


@contextmanager
def adapter_before(prometheus: PrometheusProcess, folder: Path, trust: Trust) -> Iterator[Adapter]:
    url = prometheus.url
    with running_adapter(folder, trust, prometheus_url=url, rules=RULES, objects=OBJECTS) as adapter:
        yield adapter


def test_it_is_not_ready_before_the_series_of_its_rules_were_looked_up(
    tmp_path: Path, trust: Trust, own_prometheus: PrometheusProcess
) -> None:
    own_prometheus.pause()
    with adapter_before(own_prometheus, tmp_path, trust) as adapter, adapter.caller() as caller:
        assert "[-]metrics failed: series have not been looked up yet" in adapter.plain("/readyz?verbose").text
        assert adapter.plain("/livez").status == 200
        own_prometheus.resume()
        eventually(lambda: adapter.plain("/readyz").status == 200)
        assert caller.pods("open_connections", labelSelector="app=web").status == 200


def test_a_prometheus_that_hangs_does_not_keep_it_from_being_ready(
    tmp_path: Path, trust: Trust, own_prometheus: PrometheusProcess
) -> None:
    own_prometheus.pause()
    with adapter_before(own_prometheus, tmp_path, trust) as adapter:
        eventually(lambda: adapter.plain("/readyz").status == 200)
    own_prometheus.resume()
