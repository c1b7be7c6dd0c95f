"""After an outage of a scripted Prometheus, the samples that it has are soon available again."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from adapter.foundation.cluster.values.state import NodeAddress
from adapter.foundation.sources.prometheus.answers.answer_elements import INSTANT_LIMITS
from adapter.foundation.sources.prometheus.answers.decoding import read_instant
from adapter.foundation.sources.prometheus.answers.ranges import range_parts
from adapter.foundation.sources.prometheus.errors import (
    PrometheusError,
    PrometheusTimeoutError,
    PrometheusUnreachableError,
    QueryRefusedError,
    UnexpectedAnswerError,
)
from adapter.foundation.time.pace import UNPACED
from adapter.nodes.board.refresh_logs import RefreshReports
from adapter.nodes.model.day import LoadDay
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.scheduling_settings import SchedulingSettings
from adapter.nodes.model.week import LoadWeek
from adapter.nodes.queries.expressions import NEWEST, PART_LABEL, RATIO
from adapter.nodes.queries.query_steps import queries_allowed
from adapter.nodes.queries.refresher import SampleRefresher
from adapter.nodes.queries.series_survey import SURVEY_SECONDS, survey_parts
from tests.adapter.nodes.placement.objects import a_node
from tests.adapter.nodes.queries.answers import matrix_body

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterNode
    from adapter.foundation.sources.prometheus.answers.ranges import RangeReader
    from adapter.foundation.sources.prometheus.queries.client import PrometheusClient

START = 1_800_000_000.0
INTERVAL = 30.0
PARTS = re.compile(rf'"{PART_LABEL}", "([^"]+)", "", ""')


class Scripted:
    """A Prometheus that answers range queries with a steady load, with nothing, or too late."""

    mode = "steady"

    def __init__(self) -> None:
        self.loads = {"a": 0.5}
        self.steps = 0
        """Steps that were asked for."""

    def instant(self, query: str, **_: object) -> Any:  # noqa: ANN401 - it never returns
        raise PrometheusUnreachableError(query, "no survey here")

    def read_range(
        self, reader: RangeReader, query: str, *, start: float, end: float, step_seconds: float, **_: object
    ) -> None:
        if self.mode == "hangs":
            raise PrometheusTimeoutError(query, "no answer")
        (part,) = range_parts(start, end, step_seconds)
        times = range(int(start), int(end) + 1, int(step_seconds))
        self.steps += len(times)
        series = []
        for instance, load in self.loads.items():
            values = {RATIO: dict.fromkeys(times, load), NEWEST: {time: float(time) for time in times}}
            series += [({"instance": instance, PART_LABEL: name}, found) for name, found in values.items()]
        reader.add(part, matrix_body([] if self.mode == "empty" else series))


class Surveyed(Scripted):
    """A Prometheus that also answers the survey, with so many series for each resource."""

    def __init__(self, series: float, envelope: dict[str, Any]) -> None:
        super().__init__()
        self.series = series
        self.envelope = envelope
        self.surveys = 0

    def instant(self, query: str, **_: object) -> Any:  # noqa: ANN401 - as above
        self.surveys += 1
        if self.mode == "hangs" and not self.series:
            raise PrometheusTimeoutError(query, "no answer")
        counts = [
            {"metric": {PART_LABEL: f"series:{one.value}"}, "value": [START, str(self.series)]} for one in LoadResource
        ]
        document = {"status": "success", "data": {"resultType": "vector", "result": counts}, **self.envelope}
        body = bytearray(json.dumps(document).encode())
        return read_instant(query, body, evaluated_at=START, limits=INSTANT_LIMITS, pace=UNPACED)


@pytest.mark.parametrize(("mode", "refreshes"), [("hangs", 2), ("empty", 1)])
def test_samples_missed_during_an_outage_are_queried_again(mode: str, refreshes: int) -> None:
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


@pytest.mark.parametrize(("away", "has_all"), [(1, True), (4, True), (40, False)])
def test_a_node_that_registers_again_after_minutes_has_all_its_samples(away: int, *, has_all: bool) -> None:
    prometheus = Scripted()
    prometheus.loads = {"a": 0.5, "b": 0.4}
    refresher = SampleRefresher(cast("PrometheusClient", prometheus), SchedulingSettings(), refresh_seconds=INTERVAL)
    samples, now, both = None, START, (a_node("a"), a_node("b"))
    for nodes in (both, both, *[both[1:]] * away, both, both):
        samples = refresher.refresh(now, samples, nodes).samples
        now += INTERVAL
    assert samples is not None
    for grid in samples.grids.values():
        lacking = np.isnan(grid.values).sum(axis=1)
        assert lacking[1] == 0
        assert bool(lacking[0] == 0) is has_all


def test_a_node_that_comes_and_goes_costs_few_queries_for_all_samples_and_other_nodes_are_still_noticed() -> None:
    prometheus = Scripted()
    prometheus.loads = {"a": 0.5, "b": 0.4, "c": 0.3}
    refresher = SampleRefresher(cast("PrometheusClient", prometheus), SchedulingSettings(), refresh_seconds=INTERVAL)
    samples, now = None, START
    a, b, c = map(a_node, "abc")
    whole: list[int] = []
    for number in range(120):
        nodes = (*([a] if number % 2 else []), b, *([c] if number != 61 else []))
        prometheus.steps = 0
        samples = refresher.refresh(now, samples, nodes).samples
        whole += [number] if prometheus.steps > 100 else []
        now += INTERVAL
    # At the start, for `a` once in half an hour, and for `c`.
    assert whole == [0, 3, 62, 63]
    assert samples is not None
    assert all(not np.isnan(grid.values[grid.nodes.index("b")]).any() for grid in samples.grids.values())


@pytest.mark.parametrize(
    ("series", "envelope", "measured"),
    [
        (0, {}, set()),
        (0, {"warnings": ["a store is away"]}, set(LoadResource)),
        (math.nan, {}, set(LoadResource)),
        (math.inf, {}, set(LoadResource)),
    ],
)
def test_a_survey_that_is_partial_or_not_a_finite_count_is_not_trusted(
    series: float, envelope: dict[str, Any], measured: set[LoadResource]
) -> None:
    """If one of several stores is down and the others have no series of a resource, nothing is known of the first."""

    prometheus = Surveyed(series, envelope)
    refresher = SampleRefresher(cast("PrometheusClient", prometheus), SchedulingSettings(), refresh_seconds=INTERVAL)
    samples = refresher.refresh(START, None, None).samples
    assert set(samples.grids) == measured


def test_the_first_exporters_are_seen_at_the_next_refresh() -> None:
    """Tidewatch may be installed before node_exporter, and started before Prometheus has scraped anything."""
    prometheus = Surveyed(0, {})
    refresher = SampleRefresher(cast("PrometheusClient", prometheus), SchedulingSettings(), refresh_seconds=INTERVAL)
    assert not refresher.refresh(START, None, None).samples.grids
    prometheus.series = 8
    assert set(refresher.refresh(START + INTERVAL, None, None).samples.grids) == set(LoadResource)


def test_a_failing_prometheus_is_reported_as_failed_even_if_it_had_no_series_before() -> None:
    """While no node is measured, only the survey is sent, so its failure is that of all resources."""
    prometheus = Surveyed(0, {})
    refresher = SampleRefresher(cast("PrometheusClient", prometheus), SchedulingSettings(), refresh_seconds=INTERVAL)
    assert refresher.refresh(START, None, None).failures == {}
    prometheus.mode = "hangs"
    for number in (1, 2, 3):
        assert refresher.refresh(START + number * INTERVAL, None, None).failures.keys() == set(LoadResource)
    prometheus.mode, prometheus.series = "steady", 8
    found = refresher.refresh(START + 4 * INTERVAL, None, None)
    assert (found.failures, set(found.samples.grids)) == ({}, set(LoadResource))


def test_the_failure_of_an_outage_ends_for_resources_without_series() -> None:
    """Most clusters have no GPUs, so they are not queried after Prometheus has answered the first survey."""
    prometheus, clock = Surveyed(0, {}), [0.0]
    refresher = SampleRefresher(
        cast("PrometheusClient", prometheus),
        SchedulingSettings(),
        refresh_seconds=INTERVAL,
        monotonic=lambda: clock[0],
    )
    reports, found = RefreshReports(), []
    for prometheus.mode in ("hangs", "steady"):
        found.append(set(reports.failures(refresher.refresh(START + clock[0], None, None))))
        clock[0] += 2 * INTERVAL
    assert found == [set(LoadResource), set()]


def test_the_survey_is_repeated_soon_after_queries_failed() -> None:
    """A tenant may have begun to export thousands of made-up nodes, and the survey counts them."""
    prometheus, clock = Surveyed(8, {}), [0.0]
    refresher = SampleRefresher(
        cast("PrometheusClient", prometheus),
        SchedulingSettings(),
        refresh_seconds=INTERVAL,
        monotonic=lambda: clock[0],
    )
    surveyed = []
    for prometheus.mode in ("steady", "steady", "steady", "hangs", "steady", "steady"):
        refresher.refresh(START + clock[0], None, None)
        surveyed.append(prometheus.surveys)
        clock[0] += INTERVAL
    assert surveyed == [1, 1, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("failure", "surveyed"),
    [
        (PrometheusUnreachableError("survey", "connection refused"), [True, True, True, False]),
        (UnexpectedAnswerError("survey", "a page of a gateway"), [True, True, True, False]),
        (PrometheusTimeoutError("survey", "no answer"), [True, False, False]),
    ],
    ids=["unreachable", "gateway", "slow"],
)
def test_sources_from_before_the_start_are_known_even_if_prometheus_starts_later(
    failure: PrometheusError, surveyed: list[bool]
) -> None:
    """Otherwise, another tenant's exporter could take the nodes of one that was silent at the start."""

    class Starting(Surveyed):
        def instant(self, query: str, **options: object) -> Any:  # noqa: ANN401 - as above
            past.append("offset 604800s" in query)
            if self.mode == "away":
                raise failure
            return super().instant(query, **options)

        def read_range(self, reader: RangeReader, query: str, **options: Any) -> None:  # noqa: ANN401 - as above
            if self.mode == "away":
                raise failure
            super().read_range(reader, query, **options)

    prometheus, clock, past = Starting(8, {}), [0.0], list[bool]()
    refresher = SampleRefresher(
        cast("PrometheusClient", prometheus), SchedulingSettings(), refresh_seconds=INTERVAL, monotonic=lambda: clock[0]
    )
    for prometheus.mode in ("away", "away", *["steady"] * 13):
        refresher.refresh(START + clock[0], None, None)
        clock[0] += INTERVAL
    assert past == surveyed


class Brief(Surveyed):
    """VictoriaMetrics, by default: it refuses a query of more than 16 KiB, without reading it."""

    most_characters = 16_384

    def __init__(self) -> None:
        super().__init__(8, {})
        self.answered: list[str] = []

    def instant(self, query: str, **options: object) -> Any:  # noqa: ANN401 - as above
        if len(query) > self.most_characters:
            self.surveys += 1
            message = (
                f"too long query; got {len(query)} bytes; mustn't exceed `-search.maxQueryLen={self.most_characters}`"
            )
            raise QueryRefusedError(query, "400", message)
        self.answered.append(query)
        return super().instant(query, **options)


@pytest.mark.parametrize(
    ("most", "matchers", "asked"),
    [
        pytest.param(16_384, {}, [3, 3, 5, 5], id="VictoriaMetrics"),
        pytest.param(16_384, {"cluster": "a" * 200}, [6, 6, 10, 10], id="with a long matcher"),
        pytest.param(100, {}, [4, 4, 5, 5], id="nothing is short enough"),
    ],
)
def test_a_survey_that_is_too_long_for_the_server_is_asked_in_parts(
    most: int, matchers: dict[str, str], asked: list[int]
) -> None:
    """Without a survey, no day is filled, no crowd is refused, and no recording rule is found."""
    prometheus, clock = Brief(), [0.0]
    prometheus.most_characters = most
    refresher = SampleRefresher(
        cast("PrometheusClient", prometheus),
        SchedulingSettings(matchers=matchers),
        refresh_seconds=INTERVAL,
        monotonic=lambda: clock[0],
    )
    surveys, filled = [], []
    for seconds in (0.0, INTERVAL, SURVEY_SECONDS, SURVEY_SECONDS + INTERVAL):
        clock[0] = seconds
        result = refresher.refresh(START + seconds, None, None)
        assert result.queries <= queries_allowed(INTERVAL)
        surveys.append(prometheus.surveys)
        filled.append(refresher.fill_day(START + seconds, LoadDay(), None, 5.0).queries)
    assert surveys == asked
    is_known = most > 100
    assert any(filled) is is_known
    parts = [part for query in prometheus.answered for part in PARTS.findall(query)]
    assert {parts.count(part) for part in survey_parts((), with_past=True)} == ({1, 2} if is_known else {0})


def test_series_keep_their_loads_when_their_order_or_names_change() -> None:
    """The layout of one answer must not be used for the series of another."""
    answers = (
        {"a": 0.1, "b": 0.2},
        {"b": 0.2, "a": 0.1},
        {"c": 0.3, "a": 0.1},
        {"a": 0.1, "b": 0.2, "c": 0.3},
    )
    prometheus = Scripted()
    refresher = SampleRefresher(cast("PrometheusClient", prometheus), SchedulingSettings(), refresh_seconds=INTERVAL)
    samples, now = None, START
    for prometheus.loads in answers:
        samples = refresher.refresh(now, samples, None).samples
        grid = samples.grids[LoadResource.MEMORY]
        newest = dict(zip(grid.nodes, grid.values[:, -1].tolist(), strict=True))
        assert {name: newest[name] for name in prometheus.loads} == prometheus.loads
        now += INTERVAL


def test_loads_follow_an_address_that_moves_from_one_node_to_another() -> None:
    """Heartbeats make new Node objects all the time, which must not hide that an address has changed."""

    def nodes(*addresses: str) -> tuple[ClusterNode, ...]:
        return tuple(
            replace(a_node(name), addresses=(NodeAddress("InternalIP", address),))
            for name, address in zip(("x", "y"), addresses, strict=True)
        )

    prometheus = Scripted()
    prometheus.loads = {"10.0.0.1": 0.1, "10.0.0.2": 0.2}
    refresher = SampleRefresher(cast("PrometheusClient", prometheus), SchedulingSettings(), refresh_seconds=INTERVAL)
    samples, now, found = None, START, []
    for known in (nodes("10.0.0.1", "10.0.0.2"), nodes("10.0.0.1", "10.0.0.2"), nodes("10.0.0.2", "10.0.0.1")):
        samples = refresher.refresh(now, samples, known).samples
        found.append(samples.grids[LoadResource.MEMORY].values[:, -1].tolist())
        now += INTERVAL
    assert found == [[0.1, 0.2], [0.1, 0.2], [0.2, 0.1]]


def test_the_past_is_queried_again_after_the_clock_was_wrong() -> None:
    """The kept day and week follow the clock, so they lose what is not within a day or a week of it."""
    prometheus, clock = Surveyed(8, {}), [0.0]
    refresher = SampleRefresher(
        cast("PrometheusClient", prometheus),
        SchedulingSettings(),
        refresh_seconds=INTERVAL,
        monotonic=lambda: clock[0],
    )

    def fills(now: float) -> list[int]:
        refresher.refresh(now, None, None)
        day = [refresher.fill_day(now, LoadDay(), None, 5.0).queries for _ in range(3)]
        return [*day, *(refresher.fill_week(now, LoadWeek(), None, 5.0, is_needed=True).queries for _ in range(2))]

    all_parts, nothing = [1, 1, 0, 1, 0], [0, 0, 0, 0, 0]
    assert (fills(START), fills(START)) == (all_parts, nothing)
    prometheus.series, clock[0] = 0, 1000.0
    assert fills(START + 1e8) == nothing
    prometheus.series = 8
    assert fills(START) == all_parts


def test_loads_return_after_all_nodes_were_briefly_missing() -> None:
    """A file of nodes that is being written has none, and so has a cluster whose nodes register again."""
    prometheus = Surveyed(8, {})
    refresher = SampleRefresher(cast("PrometheusClient", prometheus), SchedulingSettings(), refresh_seconds=INTERVAL)
    samples, filled = None, []
    for number, nodes in enumerate(((a_node("a"),), (), (a_node("a"),))):
        samples = refresher.refresh(START + number * INTERVAL, samples, nodes).samples
        filled.append(refresher.fill_day(START + number * INTERVAL, LoadDay(), nodes, 5.0).queries)
    assert samples is not None
    assert not np.isnan(samples.grids[LoadResource.CPU].values).any()
    assert filled[-1] == 1


def test_exporters_are_judged_after_the_clock_was_set_back() -> None:
    """A clock that was ahead for a moment must not end the judgement until that time is reached."""
    nodes = tuple(
        replace(a_node(name), addresses=(NodeAddress("InternalIP", address),))
        for name, address in (("x", "10.0.0.1"), ("y", "10.0.0.2"))
    )
    prometheus = Scripted()
    prometheus.loads = {"10.0.0.1:9100": 0.1}
    refresher = SampleRefresher(cast("PrometheusClient", prometheus), SchedulingSettings(), refresh_seconds=INTERVAL)
    samples = refresher.refresh(START, None, nodes).samples
    prometheus.mode = "empty"
    samples = refresher.refresh(START + 1e6, samples, nodes).samples
    prometheus.mode = "steady"
    prometheus.loads |= {"10.0.0.2:9100": 0.2, "10.0.0.2:9101": 0.9}
    result = refresher.refresh(START + INTERVAL, samples, nodes)
    assert result.samples.grids[LoadResource.MEMORY].values[:, -1].tolist() == [0.1, 0.2]
    assert [series.instance for series in result.unmapped if series.refused_for] == ["10.0.0.2:9101"]


def test_removed_nodes_are_not_counted_for_a_job() -> None:
    prometheus = Scripted()
    prometheus.loads = {"a": 0.1, "b": 0.2}
    refresher = SampleRefresher(cast("PrometheusClient", prometheus), SchedulingSettings(), refresh_seconds=INTERVAL)
    samples = refresher.refresh(START, None, (a_node("a"), a_node("b"))).samples
    (job,) = refresher.refresh(START + INTERVAL, samples, (a_node("a"),)).measured_by
    assert set(job.nodes.values()) == {1}


def test_removed_exporters_are_forgotten_even_if_no_survey_succeeds() -> None:
    prometheus, clock = Scripted(), [0.0]
    refresher = SampleRefresher(
        cast("PrometheusClient", prometheus), SchedulingSettings(), refresh_seconds=INTERVAL, monotonic=lambda: clock[0]
    )
    samples, nodes = None, (a_node("a"),)
    for number in range(30):
        prometheus.loads = {"a": 0.1, f"pod-{number}": 0.2}
        samples = refresher.refresh(START + clock[0], samples, nodes).samples
        clock[0] += INTERVAL
    last = refresher._mapping._last
    assert last is not None
    assert 2 <= len(last.mapping.mapper.found) <= 4
