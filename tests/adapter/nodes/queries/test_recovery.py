"""After an outage of a scripted Prometheus, the samples that it has are soon available again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest

from adapter.foundation.cluster.values.state import NodeAddress
from adapter.nodes.model.day import LoadDay
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.scheduling_settings import SchedulingSettings
from adapter.nodes.model.week import LoadWeek
from adapter.nodes.queries.expressions import BUSY, IDLE, STEP_SECONDS
from adapter.nodes.queries.refresher import SampleRefresher
from adapter.nodes.windows.grid import kept_columns
from tests.adapter.nodes.placement.objects import a_node
from tests.adapter.nodes.queries.scripted_samples import INTERVAL, START, Scripted, Surveyed

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterNode
    from adapter.foundation.sources.prometheus.queries.client import PrometheusClient


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


def test_a_prometheus_that_hangs_is_the_same_failure_for_all_resources() -> None:
    """Otherwise, each resource would have a line of its own in the log, with the middle of its expression left out."""
    prometheus = Scripted()
    prometheus.mode = "hangs"
    refresher = SampleRefresher(cast("PrometheusClient", prometheus), SchedulingSettings(), refresh_seconds=INTERVAL)
    assert refresher.refresh(START, None, None).failures == dict.fromkeys(LoadResource, "no answer")


def test_a_partial_answer_is_one_and_a_refresh_without_a_query_changes_nothing() -> None:
    """While nothing is answered, the past is not asked for; short refreshes leave their only query for it at times."""
    prometheus, found = Scripted(), []
    refresher = SampleRefresher(cast("PrometheusClient", prometheus), SchedulingSettings(), refresh_seconds=5.0)
    prometheus.warnings = ["a store is away"]
    for number, (prometheus.mode, kept) in enumerate((("steady", 0), ("hangs", 1), ("hangs", 0), ("steady", 1))):
        found.append(refresher.refresh(START + number * 5, None, None, kept_queries=kept).is_answered)
    assert found == [True, True, False, False]


@pytest.mark.parametrize("seconds", [5.0, 15.0, 20.0])
def test_the_older_half_of_the_windows_is_queried_soon_after_a_query_was_too_slow(seconds: float) -> None:
    """Short refreshes send fewer queries than there are resources, and each resource always has newest steps to ask."""
    prometheus = Scripted()
    refresher = SampleRefresher(cast("PrometheusClient", prometheus), SchedulingSettings(), refresh_seconds=seconds)
    prometheus.mode = "hangs"
    samples, slow = None, round(30 / seconds)
    for number in range(slow + round(240 / seconds)):
        samples = refresher.refresh(START + number * seconds, samples, None).samples
        prometheus.mode = "hangs" if number < slow else "steady"
    assert samples is not None
    known = {resource: np.count_nonzero(~np.isnan(grid.values)) for resource, grid in samples.grids.items()}
    assert known == dict.fromkeys(LoadResource, kept_columns(STEP_SECONDS))


@pytest.mark.parametrize(
    ("arrives", "lacking"),
    [pytest.param(True, 0, id="it arrives"), pytest.param(False, 10, id="there is nothing")],
)
def test_what_was_lacking_is_queried_again_until_newer_samples_have_come(*, arrives: bool, lacking: int) -> None:
    """After an outage of a store, remote write sends what it lacks, while queries are answered already."""
    prometheus = Scripted()
    prometheus.empty = outage = range(int(START) + 30, int(START) + 210)
    refresher = SampleRefresher(cast("PrometheusClient", prometheus), SchedulingSettings(), refresh_seconds=INTERVAL)
    samples, asked = None, []
    for number in range(12):
        if arrives and START + number * INTERVAL >= outage.stop:
            prometheus.empty = range(0)
        before = prometheus.steps
        samples = refresher.refresh(START + number * INTERVAL, samples, None).samples
        asked.append(prometheus.steps - before)
    assert samples is not None
    assert {int(np.isnan(grid.values).sum()) for grid in samples.grids.values()} == {lacking}
    assert asked[-1] == asked[1], asked


def test_a_remote_write_that_is_always_behind_leaves_no_gap() -> None:
    prometheus = Scripted()
    refresher = SampleRefresher(cast("PrometheusClient", prometheus), SchedulingSettings(), refresh_seconds=INTERVAL)
    samples = None
    for now in range(int(START), int(START) + 600, int(INTERVAL)):
        prometheus.empty = range(now - 80, now + 1)
        samples = refresher.refresh(float(now), samples, None).samples
    assert samples is not None
    # At the first of the six steps, the sample before is in force.
    assert {int(np.isnan(grid.values).sum()) for grid in samples.grids.values()} == {5}


def test_one_of_two_remote_writes_that_is_always_behind_leaves_no_gap() -> None:
    prometheus = Scripted()
    prometheus.loads = {"a": 0.5, "b": 0.4}
    refresher = SampleRefresher(cast("PrometheusClient", prometheus), SchedulingSettings(), refresh_seconds=INTERVAL)
    samples, lacking = None, []
    for now in range(int(START), int(START) + 600, int(INTERVAL)):
        prometheus.behind = {"b": range(now - 80, now + 1)}
        samples = refresher.refresh(float(now), samples, None).samples
        lacking.append({tuple(np.isnan(grid.values).sum(axis=1).tolist()) for grid in samples.grids.values()})
    # Each second refresh asks again for what has arrived, and the one between lacks two steps more.
    assert lacking[-2:] == [{(0, 5)}, {(0, 7)}]


@pytest.mark.parametrize(
    ("arrives", "lacking"),
    [pytest.param(True, 0, id="it arrives"), pytest.param(False, 10, id="there is nothing")],
)
def test_what_one_node_lacked_is_queried_once_more_when_it_has_newer_samples(*, arrives: bool, lacking: int) -> None:
    """A remote write that was away sends what it lacks; while an exporter was away, there was nothing to send."""
    prometheus, outage = Scripted(), range(int(START) + 30, int(START) + 210)
    prometheus.loads = {"a": 0.5, "b": 0.4}
    away = prometheus.behind if arrives else prometheus.lost
    away["b"] = outage
    refresher = SampleRefresher(cast("PrometheusClient", prometheus), SchedulingSettings(), refresh_seconds=INTERVAL)
    samples, asked = None, []
    for number in range(12):
        if START + number * INTERVAL >= outage.stop:
            prometheus.behind = {}
        before = prometheus.steps
        samples = refresher.refresh(START + number * INTERVAL, samples, None).samples
        asked.append(prometheus.steps - before)
    assert samples is not None
    assert {tuple(np.isnan(grid.values).sum(axis=1).tolist()) for grid in samples.grids.values()} == {(0, lacking)}
    assert [number for number in range(1, 12) if asked[number] > asked[1]] == [8]


@pytest.mark.parametrize(("seconds", "again"), [(300, [12]), (420, [])])
def test_what_one_node_lacked_for_long_is_not_queried_again(seconds: int, again: list[int]) -> None:
    """Where some of many nodes come and go, all samples of all nodes would be queried all the time."""
    prometheus = Scripted()
    prometheus.loads = {"a": 0.5, "b": 0.4}
    prometheus.lost = {"b": range(int(START) + 30, int(START) + 30 + seconds)}
    refresher = SampleRefresher(cast("PrometheusClient", prometheus), SchedulingSettings(), refresh_seconds=INTERVAL)
    samples, asked = None, []
    for number in range(20):
        before = prometheus.steps
        samples = refresher.refresh(START + number * INTERVAL, samples, None).samples
        asked.append(prometheus.steps - before)
    assert [number for number in range(1, 20) if asked[number] > asked[1]] == again


@pytest.mark.parametrize("first", [0, 300], ids=["asked as it passes", "asked at once"])
def test_rates_that_outlast_failed_scrapes_are_no_samples(first: int) -> None:
    """If another exporter is scraped rarely, rates are over minutes, and last as long after the last sample."""
    prometheus = Scripted()
    prometheus.loads = {"a": 0.5, "b": 0.5}
    prometheus.lost = {"b": range(int(START) + 30, int(START) + 210)}
    refresher = SampleRefresher(cast("PrometheusClient", prometheus), SchedulingSettings(), refresh_seconds=INTERVAL)
    samples = None
    for seconds in range(first, 331, int(INTERVAL)):
        samples = refresher.refresh(START + seconds, samples, None).samples
    assert samples is not None
    # The last sample is in force for one more scrape; the steps from 60 to 195 have none.
    assert {tuple(np.isnan(grid.values).sum(axis=1)) for grid in samples.grids.values()} == {(0, 10)}


@pytest.mark.parametrize(
    ("queries", "counted"),
    [
        ({}, {LoadResource.CPU, LoadResource.MEMORY}),
        ({LoadResource.CPU: "ours"}, {LoadResource.MEMORY}),
    ],
    ids=["built-in", "one of the configuration"],
)
def test_a_partial_answer_counts_only_if_a_node_without_some_of_its_series_has_no_value(
    queries: dict[LoadResource, str], counted: set[LoadResource]
) -> None:
    """The largest of the interfaces, disks and GPUs that are left, or their mean, looks like that of all."""
    prometheus = Scripted()
    settings = SchedulingSettings(queries=queries)
    refresher = SampleRefresher(cast("PrometheusClient", prometheus), settings, refresh_seconds=INTERVAL)
    samples = refresher.refresh(START, None, None).samples
    prometheus.loads, prometheus.warnings = {"a": 0.25}, ["a store is away"]
    found = refresher.refresh(START + INTERVAL, samples, None)
    assert {resource for resource, grid in found.samples.grids.items() if (grid.values == 0.25).any()} == counted
    assert found.failures.keys() == set(LoadResource)


@pytest.mark.parametrize(
    ("queries", "refused"),
    [({}, set()), ({LoadResource.CPU: "ours"}, {LoadResource.CPU})],
    ids=["built-in", "one of the configuration"],
)
def test_a_native_histogram_under_the_name_of_a_metric_of_nodes_makes_no_built_in_answer_partial(
    queries: dict[LoadResource, str], refused: set[LoadResource]
) -> None:
    """Any scraped pod can export one. The query engine of Prometheus 3 ignores it, and says so in its answer."""
    prometheus = Scripted()
    prometheus.warnings = [
        "PromQL info: ignored histogram in max aggregation (1:115)",
        'PromQL info: incompatible sample types encountered for binary operator ">": histogram > float (1:370)',
    ]
    settings = SchedulingSettings(queries=queries)
    refresher = SampleRefresher(cast("PrometheusClient", prometheus), settings, refresh_seconds=INTERVAL)
    found = refresher.refresh(START, None, None)
    assert found.failures.keys() == refused
    assert set(found.samples.grids) == set(LoadResource) - refused


def test_a_cpu_without_some_of_its_modes_has_no_value_while_answers_are_partial() -> None:
    """Series may be divided among stores one by one, so that those of a node are missing in part."""
    prometheus = Scripted()
    prometheus.modes = {IDLE: 0.75, BUSY: 0.25}
    refresher = SampleRefresher(cast("PrometheusClient", prometheus), SchedulingSettings(), refresh_seconds=INTERVAL)
    samples = refresher.refresh(START, None, None).samples
    prometheus.modes, prometheus.warnings = {IDLE: 0.25, BUSY: 0.25}, ["a store is away"]
    found = refresher.refresh(START + INTERVAL, samples, None).samples.grids[LoadResource.CPU].values
    assert set(found[~np.isnan(found)]) == {0.25}


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


def test_series_of_a_node_that_has_just_been_removed_are_not_without_a_node() -> None:
    """They end minutes after the Node object, so a cluster that shrinks would have unmapped series all the time."""
    prometheus = Scripted()
    prometheus.loads = {"a": 0.1, "b": 0.2, "stranger": 0.3}
    refresher = SampleRefresher(cast("PrometheusClient", prometheus), SchedulingSettings(), refresh_seconds=INTERVAL)
    samples, found = None, []
    for seconds, names in ((0.0, "ab"), (INTERVAL, "a"), (300.0, "a"), (3600.0, "a"), (3630.0, "ab")):
        result = refresher.refresh(START + seconds, samples, tuple(map(a_node, names)))
        samples = result.samples
        found.append([series.instance for series in result.unmapped])
    assert found == [["stranger"], ["stranger"], ["stranger"], ["b", "stranger"], ["stranger"]]


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
    assert 2 <= len(last.mapper.found) <= 4
