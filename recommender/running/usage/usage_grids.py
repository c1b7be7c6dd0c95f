"""Reads the usage of containers step by step, for comparison with requests."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from recommender.kinds.resources.backtest.usage_grid import SampleArray, UsageGrid, edges_of
from recommender.kinds.resources.histograms import DAY_SECONDS
from recommender.kinds.resources.usage import MOST_BYTES, MOST_CORES, ContainerRows
from recommender.running.usage import usage_queries
from recommender.running.usage.container_usage import ask_slice
from recommender.running.usage.prometheus_vectors import in_turn

if TYPE_CHECKING:
    from collections.abc import Collection

    from recommender.running.usage.cluster_history import ClusterHistory, ClusterReader
    from recommender.running.usage.usage_queries import Resolution


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
    edges = edges_of(days, resolution.step_seconds, DAY_SECONDS)
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
