"""The load of a CPU after an outage of a scripted Prometheus, when rates cover only a part of their range."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from adapter.foundation.sources.prometheus.answers.ranges import range_parts
from adapter.foundation.sources.prometheus.errors import PrometheusUnreachableError
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.scheduling_settings import SchedulingSettings
from adapter.nodes.queries.expressions import BASES, BUSY, IDLE, NEWEST, PART_LABEL, STEP_SECONDS
from adapter.nodes.queries.refresher import SampleRefresher
from tests.adapter.nodes.queries.answers import matrix_body

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.sources.prometheus.answers.ranges import RangeReader
    from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
    from adapter.nodes.model.arrays import Floats

START = 1_800_000_000
INTERVAL = STEP_SECONDS
OUTAGE = range(START + 300, START + 420)
BUSY_SHARE = 0.12


class Rates:
    """A Prometheus with the rates of CPUs, which cover half of their range at the steps before and after an outage.

    One exporter of two leaves out a mode in which its CPU is for 40% of the time.
    """

    def __init__(self) -> None:
        self.instances = ["all", "some"]

    def instant(self, query: str, **_: object) -> Any:  # noqa: ANN401 - it never returns
        raise PrometheusUnreachableError(query, "no survey here")

    def read_range(
        self, reader: RangeReader, query: str, *, start: float, end: float, step_seconds: float, **_: object
    ) -> None:
        (part,) = range_parts(start, end, step_seconds)
        series = []
        if BASES[LoadResource.CPU] in query:
            times = [time for time in range(int(start), int(end) + 1, int(step_seconds)) if time not in OUTAGE]
            for instance in self.instances:
                left_out = 0.4 if instance == "some" else 0.0
                parts: dict[str, Callable[[int], float]] = {
                    IDLE: partial(_rate, 1 - BUSY_SHARE - left_out),
                    BUSY: partial(_rate, BUSY_SHARE),
                    NEWEST: float,
                }
                series += [
                    ({"instance": instance, PART_LABEL: name}, {time: of(time) for time in times})
                    for name, of in parts.items()
                ]
        reader.add(part, matrix_body(series))


def _rate(share: float, time: int) -> float:
    is_partial = any(abs(time - end) <= STEP_SECONDS for end in (OUTAGE.start, OUTAGE.stop))
    return share * (0.5 if is_partial else 1.0)


def loads(*, first: int, instances: Callable[[int], list[str]] = lambda _now: ["all", "some"]) -> dict[str, Floats]:
    """Return the loads that refreshes from a first step to ten minutes after the start find."""
    prometheus, samples = Rates(), None
    refresher = SampleRefresher(cast("PrometheusClient", prometheus), SchedulingSettings(), refresh_seconds=INTERVAL)
    for now in range(first, START + 600, INTERVAL):
        prometheus.instances = instances(now)
        samples = refresher.refresh(float(now), samples, None).samples
    assert samples is not None
    grid = samples.grids[LoadResource.CPU]
    return dict(zip(grid.nodes, grid.values, strict=True))


def known(values: Floats) -> list[float]:
    return [float(value) for value in values if not math.isnan(value)]


def test_rates_over_a_part_of_their_range_are_not_taken_for_a_high_load() -> None:
    found = loads(first=START)["all"]
    assert len(known(found)) >= 50
    assert known(found) == pytest.approx([BUSY_SHARE] * len(known(found)))


def test_an_exporter_that_leaves_out_a_mode_is_detected() -> None:
    found = loads(first=START)["some"]
    usual = np.isclose(found, BUSY_SHARE + 0.4)
    assert np.count_nonzero(usual) >= 50


def test_series_that_are_added_and_removed_do_not_affect_others() -> None:
    def instances(now: int) -> list[str]:
        return [f"another-{now}", "all"] if now // INTERVAL % 2 else ["some", "all", f"another-{now}"]

    found = known(loads(first=START, instances=instances)["all"])
    assert found == pytest.approx([BUSY_SHARE] * len(found))
