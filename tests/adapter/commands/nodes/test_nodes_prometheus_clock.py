"""A running `nodes` behind a gateway that hides that the clock of Prometheus is wrong for a time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tests.adapter.commands.nodes.harness import OBJECTS, running_nodes, series_at
from tests.support.harnesses import prometheus_with
from tests.support.recording_proxy import recording_proxy
from tests.support.serving import eventually

if TYPE_CHECKING:
    from pathlib import Path


def test_no_load_is_served_while_prometheus_is_an_hour_ahead_and_all_loads_are_afterwards(
    tmp_path: Path,
) -> None:
    with (
        prometheus_with(tmp_path / "prometheus", series_at(int(time.time()))) as prometheus,
        recording_proxy(prometheus.url) as proxy,
    ):
        proxy.server_seconds_ahead = 3600.0
        flags = (f"--prometheus-url={proxy.url}", "--refresh-interval=1s")
        with running_nodes(tmp_path, *flags, objects=OBJECTS) as nodes:
            eventually(lambda: "behind Prometheus's, so the values are of another time" in nodes.log)
            assert nodes.ask("/watcher").status == 503
            proxy.server_seconds_ahead = 0.0
            assert nodes.watched().keys() == {"node-1", "node-2", "node-3"}
