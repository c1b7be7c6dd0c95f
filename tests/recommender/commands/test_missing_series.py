"""A sum that has lost half of its series shrinks nothing, and one that rises is followed at once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tests.recommender.commands.cluster_harness import cluster_server, put_nodes
from tests.recommender.commands.test_prometheus_clock import SECONDS, has_requests, has_size, recommending
from tests.support.prometheus import scraped_prometheus
from tests.support.recording_proxy import recording_proxy
from tests.support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path


def connections(**numbers: int) -> str:
    lines = [f'connections{{pod="{pod}"}} {number}' for pod, number in numbers.items()]
    return "\n".join(["# TYPE connections gauge", *lines, ""])


def test_a_target_keeps_its_size_while_half_of_the_series_are_missing(tmp_path: Path) -> None:
    with (
        scraped_prometheus(tmp_path / "prometheus", connections(a=400, b=400)) as prometheus,
        recording_proxy(prometheus.url) as proxy,
        cluster_server() as server,
    ):
        put_nodes(server, 3)
        with recommending(tmp_path, proxy.url, server) as recommender:
            until(partial(has_size, server, 8), SECONDS)
            prometheus.publish(connections(a=400), seen="sum(connections) == 400")
            until(lambda: "so its value may be a part of the load" in recommender.log, SECONDS)
            until(partial(has_requests, proxy, len(proxy.requests) + 5), SECONDS)
            assert has_size(server, 8)
            prometheus.publish(connections(a=500, b=500), seen="sum(connections) == 1000")
            until(partial(has_size, server, 10), SECONDS)
