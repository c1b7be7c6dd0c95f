"""After an outage the samples that Prometheus has are there again soon, with a Prometheus that is scripted."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.settings import SchedulingSettings
from adapter.nodes.queries.expressions import NEWEST, PART_LABEL, RATIO
from adapter.nodes.queries.refresher import SampleRefresher
from adapter.sources.prometheus.errors import PrometheusTimeoutError, PrometheusUnreachableError
from adapter.sources.prometheus.ranges import RangeAnswer, RangeSeries

if TYPE_CHECKING:
    from adapter.sources.prometheus.client import PrometheusClient

START = 1_800_000_000.0
INTERVAL = 30.0


class Scripted:
    """Answers range queries with a steady load, with nothing, or not in time."""

    mode = "steady"

    def instant(self, query: str, **_: object) -> Any:  # noqa: ANN401 - it never returns
        raise PrometheusUnreachableError(query, "no survey here")

    def range(self, query: str, *, start: float, end: float, step_seconds: float, **_: object) -> RangeAnswer:
        if self.mode == "hangs":
            raise PrometheusTimeoutError(query, "no answer")
        times = array("d", np.arange(start, end + 1, step_seconds))
        values = {RATIO: array("d", [0.5] * len(times)), NEWEST: times}
        series = [RangeSeries({"instance": "a", PART_LABEL: part}, times, found) for part, found in values.items()]
        return RangeAnswer(() if self.mode == "empty" else tuple(series), (), (), 0, 0)


@pytest.mark.parametrize(("mode", "refreshes"), [("hangs", 2), ("empty", 1)])
def test_what_an_outage_left_out_is_asked_for_again(mode: str, refreshes: int) -> None:
    prometheus = Scripted()
    refresher = SampleRefresher(cast("PrometheusClient", prometheus), SchedulingSettings(), refresh_seconds=INTERVAL)
    samples, now = None, START
    for prometheus.mode in ("steady", *[mode] * 10, *["steady"] * refreshes):
        samples = refresher.refresh(now, samples, None).samples
        now += INTERVAL
    assert samples is not None
    assert set(samples.grids) == set(LoadResource)
    assert {resource: int(np.isnan(grid.values).sum()) for resource, grid in samples.grids.items()} == dict.fromkeys(
        LoadResource, 0
    )
