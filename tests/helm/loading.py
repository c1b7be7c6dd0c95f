"""Loads of nodes that are made up, as `tidewatch-adapter nodes` exposes them."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Final

from adapter.nodes.model.loads import STATS, WINDOW_NAMES, NodeVerdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from demo.machine.exporter import Exporter

_NODES: Final = 24
_HOT_RATIO: Final = 0.8
_SLOWEST_SECONDS: Final = 0.004
_BOUNDS: Final = ("0.0005", "0.001", "0.0025", "0.005", "+Inf")


class LoadsAtWork:
    """Nodes whose load comes in waves, and a scheduler that asks for it."""

    def __init__(self, exporter: Exporter) -> None:
        self._exporter = exporter

    def work(self, number: int) -> None:
        """Refresh the loads, be asked for scores, and be scraped with that."""
        self._exporter.publish("".join(f"{line}\n" for line in (*_loads(time.time()), *_counts(number))))


def _loads(now: float) -> Iterator[str]:
    for index in range(_NODES):
        node = f"node-{index:02}"
        average = 0.1 + 0.75 * index / _NODES + 0.1 * math.sin(now / 8 + index)
        deviation = 0.02 + 0.15 * ((index * 7) % _NODES) / _NODES
        for window in WINDOW_NAMES:
            for stat, value in zip(STATS, (average, deviation, average + deviation, average + 0.2), strict=True):
                labels = f'node="{node}",resource="cpu",window="{window}",stat="{stat}"'
                yield f"tidewatch_node_utilization_ratio{{{labels}}} {min(value, 1.0)}"
        yield f'tidewatch_node_sample_age_seconds{{node="{node}"}} {(now + index) % 30}'
        if average > _HOT_RATIO:
            yield f'tidewatch_node_hot{{node="{node}"}} 1'


def _counts(number: int) -> Iterator[str]:
    stale, jumped = number // 50 % 2, number // 20 % 3
    states = {"known": _NODES, "unmapped": 1, "stale": stale, "estimated": 0}
    yield from (f'tidewatch_nodes{{state="{state}"}} {count}' for state, count in states.items())
    bad = {NodeVerdict.STALE: stale, NodeVerdict.JUMPED: jumped}
    counts = dict.fromkeys(NodeVerdict, 0) | bad | {NodeVerdict.FRESH: _NODES - stale - jumped}
    for verdict, count in counts.items():
        yield f'tidewatch_node_verdicts{{resource="cpu",verdict="{verdict}"}} {count}'
    for basis in ("metrics", "none", "requests"):
        yield f'tidewatch_adapter_extender_basis{{basis="{basis}"}} {int(basis == "metrics")}'
    for verb in ("filter", "prioritize"):
        yield f'tidewatch_adapter_extender_requests_total{{verb="{verb}",code="200"}} {7 * number}'
        name = "tidewatch_adapter_extender_request_duration_seconds_bucket"
        for bound in _BOUNDS:
            share = min(1.0, float(bound) / _SLOWEST_SECONDS)
            yield f'{name}{{verb="{verb}",le="{bound}"}} {7 * number * share}'
    yield f"tidewatch_adapter_prometheus_queries_total {number // 30}"
    yield f"tidewatch_adapter_state_file_failures_total {number // 30}"
