"""`serve` and `nodes` on machines that have just started, or have run for a month."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.adapter.commands.harness import SHOP
from tests.adapter.commands.nodes.harness import OBJECTS, running_nodes, series_at
from tests.support.harnesses import prometheus_with
from tests.support.serving import eventually, running_adapter
from tests.support.uptime import UPTIMES_SECONDS, environment_of_uptime

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess
    from tests.support.serving import Trust


@pytest.fixture(scope="module")
def prometheus_of_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusProcess]:
    with prometheus_with(tmp_path_factory.mktemp("prometheus"), series_at(int(time.time()))) as running:
        yield running


@pytest.mark.parametrize("uptime_seconds", UPTIMES_SECONDS)
def test_metrics_are_served_whatever_the_uptime(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess, uptime_seconds: float
) -> None:
    environment = environment_of_uptime(tmp_path / "site", uptime_seconds)
    with (
        running_adapter(
            tmp_path,
            trust,
            "--refresh-interval=1s",
            prometheus_url=prometheus.url,
            rules=SHOP.rules,
            objects=SHOP.objects,
            environment=environment,
            as_installed=True,
        ) as adapter,
        adapter.caller() as caller,
    ):
        eventually(lambda: adapter.plain("/readyz").status == 200)
        assert caller.pods("open_connections", labelSelector="app=web").status == 200
        assert caller.external("queue_depth").status == 200
        # The values are refreshed, not only asked for once.
        first = caller.external("queue_depth").items[0]["timestamp"]
        assert eventually(lambda: caller.external("queue_depth").items[0]["timestamp"] != first)
        assert not adapter.said("Traceback|internal error")


@pytest.mark.parametrize("uptime_seconds", UPTIMES_SECONDS)
def test_nodes_are_measured_and_scored_whatever_the_uptime(
    tmp_path: Path, prometheus_of_nodes: PrometheusProcess, uptime_seconds: float
) -> None:
    environment = environment_of_uptime(tmp_path / "site", uptime_seconds)
    flags = (f"--prometheus-url={prometheus_of_nodes.url}", "--plain-bind-address=127.0.0.1:0")
    with running_nodes(tmp_path, *flags, objects=OBJECTS, environment=environment, as_installed=True) as nodes:
        assert set(nodes.watched()) == {"node-1", "node-2", "node-3"}
        _, scores = nodes.prioritized(["node-1", "node-2"])
        assert scores["node-1"] > scores["node-2"]
        assert not [line for line in nodes.log.splitlines() if "Traceback" in line or "internal error" in line]
