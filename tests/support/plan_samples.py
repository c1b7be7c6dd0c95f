"""A data set with every irregularity that makes query plans differ, and a Prometheus that holds it.

It has equal pod names in several namespaces, labels that some series lack, several series for one object, series that
ended, NaN and infinities.
"""

from __future__ import annotations

import http.client
import json
import math
import urllib.parse
from contextlib import contextmanager
from functools import lru_cache
from random import Random
from typing import TYPE_CHECKING

from adapter.metrics.rulebook.requests import Row
from demo.machine.prometheus import running_prometheus
from tests.support.backfill import backfill

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ASKED_AT = 1_700_000_000
"""The time at which every query is evaluated, in seconds since 1970."""
_HISTORY_SECONDS = 720
_STEP_SECONDS = 30

_VALUES = {
    "namespace": ("shop", "bank", "lab", ""),
    "pod": ("web-0", "web-1", "db.0", ""),
    "node": ("n1", "n2", "n3", ""),
    "container": ("app", "proxy", ""),
    "code": ("200", "500", ""),
    "instance": ("i1", "i2"),
    "queue": ("a", "ab", "b.c", ""),
    "job": ("batch", "", ""),
    "owner": ("web", "db"),
    "mode": ("user", "idle", ""),
    "zone": ("z1", "z2"),
    "le": ("0.1", "1", "+Inf"),
}
_SCHEMAS = {
    "queue_depth": (("namespace", "pod", "container", "queue", "node"), 40),
    "websocket_connections": (("namespace", "pod", "node", "queue"), 40),
    "kube_pod_container_resource_limits": (("namespace", "pod", "container", "job"), 30),
    "kube_pod_info": (("namespace", "pod", "owner", "node"), 16),
    "kube_pod_labels": (("namespace", "pod", "owner"), 14),
    "kube_resourcequota": (("namespace", "job", "queue"), 10),
    "weight": (("container", "node"), 8),
    "odd": (("namespace", "pod", "container", "node", "queue"), 30),
    "http_requests_total": (("namespace", "pod", "container", "code", "instance", "node", "queue"), 60),
    "http_errors_total": (("namespace", "pod", "container", "code", "node", "queue"), 40),
    "http_request_duration_seconds_bucket": (("namespace", "pod", "container", "node", "queue", "le"), 90),
    "container_cpu_usage_seconds_total": (("namespace", "pod", "container", "node"), 40),
    "container_memory_working_set_bytes": (("namespace", "pod", "container", "node"), 30),
    "kafka_consumergroup_lag": (("namespace", "queue", "instance"), 16),
    "node_load": (("node", "mode"), 12),
    "node_info": (("node", "zone"), 4),
    "node_cpu_seconds_total": (("node", "mode", "instance"), 16),
}
# Few series, so that joins by few labels find single partners: what refused plans are shown to be wrong on.
_COUNTEREXAMPLES = (
    'speed{namespace="shop",pod="web-0",rack="r1"} 3',
    'speed{namespace="bank",pod="web-0",rack="r2"} 5',
    'speed{namespace="bank",pod="web-1",rack="r3"} 7',
    'power{namespace="shop",pod="web-0"} 11',
    'power{namespace="bank",pod="web-0"} 13',
    'power{namespace="bank",pod="web-1"} 17',
    'rack_owner{rack="r1",namespace="bank",pod="web-1"} 1',
    'rack_owner{rack="r3",namespace="shop",pod="web-0"} 1',
    'heat_bucket{namespace="shop",pod="web-0",le="1"} 1',
    'heat_bucket{namespace="shop",pod="web-0",le="+Inf"} 2',
)


def samples(random: Random) -> str:
    """Return the data set as OpenMetrics text."""
    lines = []
    for metric, (labels, count) in _SCHEMAS.items():
        made = {tuple(random.choice(_VALUES[label]) for label in labels) for _ in range(count)}
        for values in sorted(made):
            shown = ",".join(f'{label}="{value}"' for label, value in zip(labels, values, strict=True) if value)
            lines += [f"{metric}{{{shown}}} {value} {time}" for time, value in _course(random, metric)]
    lines += [f"{series} {ASKED_AT}" for series in _COUNTEREXAMPLES]
    return "\n".join([*lines, "# EOF", ""])


def _course(random: Random, metric: str) -> Iterator[tuple[int, float]]:
    """Return the samples of one series; one in ten ends before `ASKED_AT`."""
    started = ASKED_AT - _HISTORY_SECONDS
    ended = ASKED_AT - random.choice((330, 400)) if random.random() < 0.1 else ASKED_AT + 60
    value = float(random.choice((0, 1, 2, 5, 10, 60, 1000)))
    for time in range(started, ended + 1, _STEP_SECONDS):
        if metric == "odd":
            yield time, random.choice((math.nan, math.inf, -math.inf, -1.5, 0.0, 2.0))
            continue
        yield time, value
        growing = metric.endswith(("_total", "_bucket"))
        value += random.choice((0, 1, 2.5, 7)) if growing else random.choice((-1, 0, 0, 0.25, 1))


class AskedPrometheus:
    """A client of a Prometheus at `ASKED_AT`, over one kept connection; it shares no code with the product."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self._ask = lru_cache(maxsize=64)(self._ask_anew)
        self.queries = 0

    def rows(self, query: str) -> list[Row] | None:
        """Return the series of the answer; None if Prometheus refuses the query. The last answers are cached."""
        return self._ask(query)

    def _ask_anew(self, query: str) -> list[Row] | None:
        self.queries += 1
        body = urllib.parse.urlencode({"query": query, "time": ASKED_AT})
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        self._connection.request("POST", "/api/v1/query", body, headers)
        response = self._connection.getresponse()
        text = response.read()
        if response.status in {400, 422}:
            return None
        assert response.status == 200, text
        data = json.loads(text)["data"]
        if data["resultType"] == "scalar":
            return [Row({}, float(data["result"][1]))]
        return [Row(series["metric"], float(series["value"][1])) for series in data["result"]]

    def close(self) -> None:
        self._connection.close()


@contextmanager
def prometheus_with_samples(folder: Path, seed: int) -> Iterator[AskedPrometheus]:
    """Run a Prometheus that holds a random data set."""
    backfill(folder, samples(Random(seed)))
    with running_prometheus(folder, retention="50y", extra_flags=["--query.lookback-delta=5m"]) as prometheus:
        asked = AskedPrometheus(prometheus.port)
        try:
            yield asked
        finally:
            asked.close()
