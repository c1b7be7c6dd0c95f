"""The load of a node while the store that holds the rates of some of its CPUs is away."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from adapter.foundation.objects.quantities import parse_quantity
from adapter.foundation.sources.prometheus.answers.ranges import range_parts
from adapter.foundation.sources.prometheus.errors import PrometheusUnreachableError
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.scheduling_settings import SchedulingSettings
from adapter.nodes.queries.expressions import BASES, BUSY, CPUS, IDLE, NEWEST, PART_LABEL
from adapter.nodes.queries.refresher import SampleRefresher
from tests.adapter.nodes.placement.objects import a_node
from tests.adapter.nodes.queries.answers import matrix_body
from tests.adapter.nodes.queries.scripted_samples import INTERVAL, PARTS, START

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.cluster.values.state import ClusterNode
    from adapter.foundation.sources.prometheus.answers.ranges import RangeReader
    from adapter.foundation.sources.prometheus.queries.client import PrometheusClient


class Stores:
    """Stores that together hold the rates of the CPUs of two nodes; those of `away` hold some of them."""

    def __init__(self) -> None:
        self.busy = {"a": [0.9, 0.1], "b": [0.3, 0.3]}
        """The load of each CPU."""
        self.idle_of_none: dict[str, float] = {}
        """The rate of the idle modes of nodes that have lost all other modes, in CPU seconds per second."""
        self.left: Callable[[str, int, int], bool] | None = None
        """Whether a node's CPU is known at a time while a store is away; None while all are there."""
        self.newest: float = math.inf
        """The time of the newest samples: later steps have no rates."""

    def instant(self, query: str, **_: object) -> Any:  # noqa: ANN401 - it never returns
        raise PrometheusUnreachableError(query, "no survey here")

    def read_range(
        self, reader: RangeReader, query: str, *, start: float, end: float, step_seconds: float, **_: object
    ) -> None:
        (part,) = range_parts(start, end, step_seconds)
        times = range(int(start), int(end) + 1, int(step_seconds))
        series: dict[tuple[str, str], dict[int, float]] = {}
        for node, loads in self.busy.items() if BASES[LoadResource.CPU] in query else ():
            for time in times:
                found = [load for cpu, load in enumerate(loads) if self.left is None or self.left(node, cpu, time)]
                if not found:
                    continue
                busy, answers = sum(found) / len(found), {NEWEST: min(float(time), self.newest)}
                if time <= self.newest:
                    answers |= {IDLE: 1 - busy, BUSY: busy, CPUS: float(len(found))}
                for name in set(PARTS.findall(query)) & answers.keys():
                    series.setdefault((node, name), {})[time] = answers[name]
        for node, idle in self.idle_of_none.items() if series else ():
            series[node, IDLE] = dict.fromkeys(times, idle)
        warnings = [] if self.left is None else ["a store is away"]
        labelled = [({"instance": node, PART_LABEL: name}, values) for (node, name), values in series.items()]
        reader.add(part, matrix_body(labelled, warnings=warnings))


class Refreshes:
    """Refreshes from the same stores."""

    def __init__(self, stores: Stores) -> None:
        self.stores = stores
        self.refresher = SampleRefresher(cast("PrometheusClient", stores), SchedulingSettings())
        self.samples: Any = None
        self.now = START
        self.behind_seconds = 0.0
        """How old the newest samples are, as those of a remote write."""

    def loads(self, nodes: tuple[ClusterNode, ...] | None = None) -> dict[str, tuple[float, float]]:
        """Return the newest load of each node after the next refresh, and its age in seconds."""
        self.stores.newest = self.now - self.behind_seconds
        self.samples = self.refresher.refresh(self.now, self.samples, nodes).samples
        grid = self.samples.grids[LoadResource.CPU]
        newest = [[value for value in values if not math.isnan(value)][-1] for values in grid.values.tolist()]
        ages = (self.now - grid.newest).tolist()
        self.now += INTERVAL
        return {node: (round(load, 6), age) for node, load, age in zip(grid.nodes, newest, ages, strict=True)}


def without_first_cpu_of_a(node: str, cpu: int, _time: int) -> bool:
    return (node, cpu) != ("a", 0)


def test_the_load_of_some_cpus_is_not_taken_for_that_of_the_node() -> None:
    stores = Stores()
    refreshes = Refreshes(stores)
    whole = {"a": (0.5, 0.0), "b": (0.3, 0.0)}
    assert refreshes.loads() == whole
    stores.left = without_first_cpu_of_a
    assert refreshes.loads() == {"a": (0.5, INTERVAL), "b": (0.3, 0.0)}
    assert refreshes.loads() == {"a": (0.5, 2 * INTERVAL), "b": (0.3, 0.0)}
    stores.left = None
    assert refreshes.loads() == whole


def test_a_node_of_which_one_idle_mode_is_left_is_not_taken_for_busy() -> None:
    """An exporter may keep idle modes alone, so that no mode need be busy."""
    stores = Stores()
    refreshes = Refreshes(stores)
    refreshes.loads()
    stores.left, stores.idle_of_none = (lambda node, _cpu, _time: node != "a"), {"a": 0.01}
    assert refreshes.loads() == {"a": (0.5, INTERVAL), "b": (0.3, 0.0)}


def test_steps_since_all_cpus_are_written_to_another_store_count() -> None:
    stores = Stores()
    refreshes = Refreshes(stores)
    refreshes.loads()
    stores.left = lambda node, cpu, time: time > START + 60 or without_first_cpu_of_a(node, cpu, time)
    for _ in range(4):
        found = refreshes.loads()
    assert found == {"a": (0.5, 0.0), "b": (0.3, 0.0)}
    values = refreshes.samples.grids[LoadResource.CPU].values[0]
    assert set(np.round(values[~np.isnan(values)], 6)) == {0.5}


@pytest.mark.parametrize("late_from", [0, 4])
def test_samples_that_are_behind_count_unless_they_lack_cpus(late_from: int) -> None:
    stores = Stores()
    refreshes = Refreshes(stores)
    for number in range(8):
        refreshes.behind_seconds = 4 * INTERVAL if number >= late_from else 0.0
        refreshes.loads()
    stores.left = lambda *_: True
    for _ in range(8):
        found = refreshes.loads()
    assert found == {"a": (0.5, 4 * INTERVAL), "b": (0.3, 4 * INTERVAL)}
    stores.left = without_first_cpu_of_a
    for _ in range(8):
        found = refreshes.loads()
    assert found["a"][0] == 0.5
    assert found["b"] == (0.3, 4 * INTERVAL)


def test_an_answer_that_tells_no_number_of_cpus_leaves_it_known() -> None:
    stores = Stores()
    refreshes = Refreshes(stores)
    refreshes.loads()
    there, stores.busy = stores.busy, {}
    refreshes.loads()
    stores.busy = there
    stores.left = without_first_cpu_of_a
    assert refreshes.loads()["a"][0] == 0.5


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_machine_that_got_fewer_cpus_is_measured(*, is_whole: bool) -> None:
    """A whole answer shows it or, while a store is away, the Node object does."""
    nodes = tuple(replace(a_node(name), capacity={"cpu": parse_quantity("2")}) for name in "ab")
    stores = Stores()
    refreshes = Refreshes(stores)
    refreshes.loads(nodes)
    stores.busy["a"] = [0.7]
    if is_whole:
        assert refreshes.loads(nodes)["a"] == (0.7, 0.0)
    stores.left = lambda *_: True
    assert (refreshes.loads(nodes)["a"] == (0.7, 0.0)) is is_whole
    smaller = (replace(nodes[0], capacity={"cpu": parse_quantity("1")}), nodes[1])
    assert refreshes.loads(smaller)["a"] == (0.7, 0.0)


def test_a_partial_answer_counts_while_the_number_of_cpus_is_not_known() -> None:
    """After a start beside a store that is away, and if a server does not answer the number."""
    stores = Stores()
    stores.left = without_first_cpu_of_a
    assert Refreshes(stores).loads() == {"a": (0.1, 0.0), "b": (0.3, 0.0)}


def test_steps_before_a_store_went_away_count_after_a_gap() -> None:
    stores = Stores()
    refreshes = Refreshes(stores)
    refreshes.loads()
    went_away = START + 600
    stores.left = lambda node, cpu, time: time < went_away or without_first_cpu_of_a(node, cpu, time)
    refreshes.now = went_away + INTERVAL
    assert refreshes.loads()["a"][0] == 0.5
    grid = refreshes.samples.grids[LoadResource.CPU]
    # The store has been away for three steps.
    assert np.isnan(grid.values).sum(axis=1).tolist() == [3, 0]
