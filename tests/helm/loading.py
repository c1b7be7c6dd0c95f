"""A cluster whose nodes are busy in waves, for the dashboard of nodes: node_exporter's series, and the Node objects."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tests.adapter.commands.nodes.harness import node
from tests.support.harnesses import moments, samples
from tests.support.serving import listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.harnesses import Course

STEP_SECONDS: Final = 5
PAST_SECONDS: Final = 1200
NODES: Final = tuple(f"node-{index:02}" for index in range(16))
_UNKNOWN_INSTANCE: Final = "10.9.9.9:9100"
_GONE: Final = NODES[3]
"""The node that was scraped until ten minutes ago."""
_MEMORY_BYTES: Final = 8 * 2**30
_WAVE_SECONDS: Final = 300.0

SCHEDULING: Final = """\
apiVersion: tidewatch.io/v1alpha1
kind: SchedulingConfiguration
hotspots: {cpu: 75%, rounds: 1}
"""


def objects() -> dict[str, Any]:
    """Return the nodes as `kubectl get nodes -o json` prints them."""
    return listed(*(node(name, f"10.0.0.{index}", "east") for index, name in enumerate(NODES)))


def series_at(now: int) -> Iterator[str]:
    """Yield the samples of all series as lines of OpenMetrics, none in the future, since a scrape would refuse them."""
    times = moments(now, STEP_SECONDS, PAST_SECONDS, 0)
    for index, instance in enumerate((*NODES, _UNKNOWN_INSTANCE)):
        busy = partial(_busy_seconds, index, times[0])
        idle = partial(_idle_seconds, index, times[0])
        courses: dict[str, Course] = {
            f'node_cpu_seconds_total{{instance="{instance}",cpu="0",mode="user"}}': busy,
            f'node_cpu_seconds_total{{instance="{instance}",cpu="0",mode="idle"}}': idle,
            f'node_memory_MemTotal_bytes{{instance="{instance}"}}': lambda _: _MEMORY_BYTES,
            f'node_memory_MemAvailable_bytes{{instance="{instance}"}}': lambda _: _MEMORY_BYTES // 2,
        }
        yield from samples(courses, [moment for moment in times if instance != _GONE or moment < now - 600])


def _busy_seconds(index: int, first: int, moment: float) -> float:
    """Return the CPU seconds used, around a mean and in waves that are the node's own."""
    mean, height = 0.08 + 0.75 * index / len(NODES), 0.15 * (1 + index * 7 % 5) / 5
    passed, turn = moment - first, 2 * math.pi / _WAVE_SECONDS
    waves = (math.cos(index) - math.cos(passed * turn + index)) / turn
    return round(mean * passed + min(height, mean) * waves, 3)


def _idle_seconds(index: int, first: int, moment: float) -> float:
    return round(moment - first - _busy_seconds(index, first, moment), 3)
