"""Judges how well sizes would have fitted the usage that Prometheus knows, a few namespaces at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.commands.sizes.size_reading import chosen_containers, namespace_groups
from recommender.kinds.resources.backtest.judging import FEWEST_HISTORY_DAYS, JudgedContainer, judged_containers
from recommender.kinds.resources.backtest.policies import HISTORY_DAYS, KRR_DAYS
from recommender.kinds.resources.backtest.usage_grid import SampleArray, UsageGrid, edges_of
from recommender.kinds.resources.histograms import DAY_SECONDS
from recommender.kinds.resources.usage import MOST_BYTES, MOST_CORES, ContainerRows
from recommender.running.usage import usage_queries
from recommender.running.usage.container_usage import ask_slice
from recommender.running.usage.prometheus_vectors import in_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from recommender.kinds.resources.bounds import SizeSettings
    from recommender.kinds.resources.workloads import SizedWorkload
    from recommender.running.usage.cluster_history import ClusterHistory, ClusterReader
    from recommender.running.usage.usage_queries import Resolution
    from recommender.running.usage.usage_window import SizeWindow


SHORTEST_SECONDS: Final = (FEWEST_HISTORY_DAYS + 1) * DAY_SECONDS
_SERIES_AT_ONCE: Final = 1_000
"""The largest number of series that are read at a time, since all of their samples are held in memory."""


@dataclass(frozen=True, slots=True)
class SizeBacktest:
    """How well the current requests, and the requests of each policy, fitted the usage."""

    window: SizeWindow
    settings: SizeSettings
    containers: tuple[JudgedContainer, ...]
    """The judged containers, sorted by name."""
    notes: tuple[str, ...]
    """Sentences about what is unknown, with the consequences, and about the history that each policy had."""


def backtest_sizes(
    reader: ClusterReader,
    history: ClusterHistory,
    settings: SizeSettings,
    resolution: Resolution,
    wanted: Callable[[SizedWorkload], bool],
) -> SizeBacktest:
    """Return the backtest of the wanted workloads that have a pod at the end. Raises PrometheusError."""
    chosen = chosen_containers(history, wanted)
    found: list[JudgedContainer] = []
    for namespaces in namespace_groups(chosen, _SERIES_AT_ONCE):
        rows = ContainerRows.of({pod: row for pod, row in chosen.items() if pod.namespace in namespaces})
        grid = read_usage_grid(reader, history, rows, namespaces, resolution)
        found += judged_containers(grid, settings, history.facts, history.running)
    notes = (*history.facts.missing, *_short_histories(int(reader.window.seconds // DAY_SECONDS)))
    return SizeBacktest(reader.window, settings, tuple(sorted(found, key=lambda each: each.name)), notes)


def _short_histories(days: int) -> Iterator[str]:
    """Yield a sentence for each policy about how much history it had.

    On the first judged days, a policy may have had less history than it uses.
    """
    for name, wanted in (("sizes", HISTORY_DAYS), ("vpa", HISTORY_DAYS), ("krr", KRR_DAYS)):
        most = min(days - 1, wanted)
        had = f"{most} days" if most == FEWEST_HISTORY_DAYS else f"{FEWEST_HISTORY_DAYS} to {most} days"
        yield f"{name} looks at {wanted} days of history, and had {had} before the days that were judged"


def read_usage_grid(
    reader: ClusterReader,
    history: ClusterHistory,
    rows: ContainerRows,
    namespaces: Collection[str],
    resolution: Resolution,
) -> UsageGrid:
    """Return the usage of the rows on the whole days in the window of the reader. Raises PrometheusError."""
    where, pods = usage_queries.namespace_matcher(namespaces), tuple(sorted(rows.places))
    days = int(reader.window.seconds // DAY_SECONDS)
    edges = edges_of(days, resolution.step_seconds)
    places = {pod: place for place, pod in enumerate(pods)}

    def read(query: str, most: float) -> SampleArray:
        found = np.full((len(pods), edges[-1]), np.nan, dtype=np.float32)
        ask = partial(ask_slice, reader, query, resolution.step_seconds)
        for _, samples in in_turn(ask, reader.window.slices(len(pods), resolution.step_seconds)):
            for each in samples:
                place = places.get(each.pod)
                if place is None:
                    continue
                steps = edges[-1] - 1 - np.rint((reader.window.end - each.times) / resolution.step_seconds)
                # A comparison with NaN is false. A value that no machine can have is not a measurement.
                usable = (steps >= 0) & (steps < edges[-1]) & (each.values >= 0) & (each.values <= most)
                found[place, steps[usable].astype(np.int64)] = each.values[usable]
        return found

    return UsageGrid(
        rows,
        pods,
        read(usage_queries.cpu_usage(where, resolution.rate_seconds), MOST_CORES),
        read(usage_queries.memory_usage(where), MOST_BYTES),
        edges,
        resolution.step_seconds,
        tuple(reversed(history.kills[:days])),
    )
