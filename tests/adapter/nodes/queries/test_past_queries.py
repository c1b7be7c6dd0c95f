"""The load of the last day: which slots are queried, and what a real Prometheus answers."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.nodes.model.day import SLOT_SECONDS, SLOTS, LoadDay
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.samples import SampleSet
from adapter.nodes.model.scheduling_settings import SchedulingSettings
from adapter.nodes.model.week import LoadWeek
from adapter.nodes.queries.past_queries import DAY, WEEK, PastProgress, newest_lacking
from adapter.nodes.queries.refresher import MOST_UNASKED_SAMPLES, SampleRefresher
from adapter.nodes.queries.series_survey import Survey
from adapter.nodes.windows.day import complete_slots, day_after, known_slots
from adapter.nodes.windows.week import known_quarters, week_at, with_past
from tests.adapter.nodes.placement.objects import a_node
from tests.adapter.nodes.queries.exporters import NodeExporter, busy_seconds, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from adapter.nodes.queries.refresh_results import RefreshResult
    from tests.support.prometheus import ScrapedPrometheus

CPU, MEMORY = LoadResource.CPU, LoadResource.MEMORY
SETTINGS = SchedulingSettings()
AT = int(time.time() // SLOT_SECONDS) * SLOT_SECONDS - 3600
START = AT - 7200.0
SURVEY = Survey({CPU: 64, MEMORY: 2}, {CPU: 1, MEMORY: 1})


@given(known=st.sets(st.integers(0, 30).map(lambda slot: slot * SLOT_SECONDS)), most=st.integers(1, 40))
def test_only_the_newest_gap_is_queried(known: set[int], most: int) -> None:
    steps = range(0, 30 * SLOT_SECONDS, SLOT_SECONDS)
    piece = newest_lacking(steps, known, most)
    lacking = [step for step in steps if step not in known]
    if piece is None:
        assert lacking == []
        return
    assert piece.last == lacking[-1]
    assert not known.intersection(piece.times)
    assert 1 <= piece.columns <= most


def test_after_a_start_each_slot_is_queried_once_until_the_day_is_complete() -> None:
    progress, seen = PastProgress(DAY), dict[LoadResource, list[int]]()
    while (query := progress.next_query({}, AT + 10.0, SETTINGS, SURVEY)) is not None:
        seen.setdefault(query.resource, []).extend(query.piece.times)
        progress.note_success(query)
    assert {resource: len(times) for resource, times in seen.items()} == {CPU: 284, MEMORY: 284}
    assert all(len(set(times)) == len(times) for times in seen.values())
    # What the samples of the next minutes show is not queried.
    assert max(seen[CPU]) <= AT - 1020


def test_a_failed_query_is_sent_again_in_smaller_parts() -> None:
    progress = PastProgress(DAY)
    columns = []
    for _ in range(4):
        query = progress.next_query({}, AT + 10.0, SETTINGS, SURVEY)
        assert query is not None
        columns.append(query.piece.columns)
        progress.note_failure(query)
    # CPU and memory in turn.
    assert columns == [284, 284, 142, 142]


@pytest.mark.parametrize(
    ("survey", "settings"),
    [
        pytest.param(Survey(), SETTINGS, id="no series"),
        pytest.param(SURVEY, SchedulingSettings(queries={CPU: "a", MEMORY: "b"}), id="other queries"),
    ],
)
def test_nothing_is_queried_without_series_or_with_configured_queries(
    survey: Survey, settings: SchedulingSettings
) -> None:
    assert PastProgress(DAY).next_query({}, AT + 10.0, settings, survey) is None


def test_a_resource_whose_queries_fail_does_not_delay_the_other() -> None:
    progress, queried = PastProgress(DAY), list[LoadResource]()
    while len(queried) < 20 and (query := progress.next_query({}, AT + 10.0, SETTINGS, SURVEY)) is not None:
        queried.append(query.resource)
        if query.resource is CPU:
            progress.note_failure(query)
        else:
            assert query.piece.columns == 284
            progress.note_success(query)
    assert queried[:2] == [CPU, MEMORY]
    assert set(queried[2:]) == {CPU}


def test_gaps_of_a_recently_added_rule_are_queried_from_the_counters() -> None:
    survey = Survey({CPU: 640_000}, {CPU: 5_000}, recorded=frozenset({CPU}))
    progress, rule, counters = PastProgress(DAY), list[int](), list[int]()
    while (query := progress.next_query({}, AT + 10.0, SETTINGS, survey)) is not None:
        (rule if query.is_recorded else counters).append(query.piece.columns)
        assert (":" in query.expression) == query.is_recorded
        progress.note_success(query)
    # A rule has one series for each exporter, so a few queries are enough.
    assert (sum(rule), sum(counters)) == (284, 284)
    assert len(rule) <= 6 < len(counters)


@pytest.fixture(scope="module", name="client")
def _client(start_prometheus: Callable[..., ScrapedPrometheus]) -> Iterator[PrometheusClient]:
    exporters = (NodeExporter("plain:9100"), NodeExporter("late:9100", is_scraped=lambda at: at > AT - 3600))
    other = NodeExporter("1.2.3.4:80", labels={"job": "tenant", "node": "plain"}, is_scraped=lambda at: at > AT - 2400)
    prometheus = start_prometheus(history=text_of((*exporters, other), START, AT))
    with PrometheusClient(PrometheusSettings(prometheus.url)) as client:
        yield client


@pytest.fixture(scope="module", name="week_client")
def _week_client(start_prometheus: Callable[..., ScrapedPrometheus]) -> Iterator[PrometheusClient]:
    # Long ago it was scraped more rarely.
    exporter = NodeExporter("plain:9100", cpus=1, is_scraped=lambda at: at > AT - 1200 or at % 240 < 15)
    prometheus = start_prometheus(history=text_of((exporter,), AT - 2 * 86_400.0, AT))
    with PrometheusClient(PrometheusSettings(prometheus.url)) as client:
        yield client


def filled(refresher: SampleRefresher, result: RefreshResult) -> LoadDay:
    day = day_after(LoadDay(), complete_slots(result.samples, AT).values(), AT)
    for _ in range(4):
        day = day_after(day, refresher.fill_day(AT, day, None, 10.0).slots, AT)
    return day


def test_the_day_is_filled_from_a_real_prometheus(client: PrometheusClient) -> None:
    refresher = SampleRefresher(client, SETTINGS)
    day = filled(refresher, refresher.refresh(AT, None, None))
    row, late = (day.means[CPU][day.nodes.index(name)] for name in ("plain", "late"))
    # The load switches between 10 and 90% every two minutes, so five minutes have 42 or 58%.
    assert np.count_nonzero(~np.isnan(row)) >= 22
    assert 0.38 <= np.nanmin(row) <= np.nanmax(row) <= 0.62
    assert 10 <= np.count_nonzero(~np.isnan(late)) <= 13
    assert len(known_slots(day, MEMORY)) >= 22
    assert day.means[MEMORY][day.nodes.index("plain")][~np.isnan(row)] == pytest.approx(0.6, abs=0.01)


def test_the_slots_at_both_ends_of_an_outage_have_the_load_of_their_samples(
    start_prometheus: Callable[..., ScrapedPrometheus],
) -> None:
    exporter = NodeExporter("plain:9100", is_scraped=lambda at: not AT - 3780 < at < AT - 3480)
    prometheus = start_prometheus(history=text_of((exporter,), START, AT))
    # The process was running meanwhile, so it lacks nothing but these two slots.
    means = {resource: np.full((1, SLOTS), 0.5, dtype=np.float32) for resource in (CPU, MEMORY)}
    means[CPU][:, [-13, -12]] = np.nan
    with PrometheusClient(PrometheusSettings(prometheus.url)) as client:
        refresher = SampleRefresher(client, SETTINGS)
        refresher.refresh(AT, None, None)
        (found,) = refresher.fill_day(AT, LoadDay(AT, ("plain",), means), None, 10.0).slots
    assert found.end == AT - 3300
    for end, load in zip((AT - 3600, AT - 3300), found.values[0], strict=True):
        first, *_, last = (at for at in exporter.times(START, AT) if end - SLOT_SECONDS < at <= end)
        assert load == pytest.approx((busy_seconds(last) - busy_seconds(first)) / (last - first))


def test_the_week_of_a_real_prometheus_is_read_beyond_the_day(week_client: PrometheusClient) -> None:
    refresher = SampleRefresher(week_client, SETTINGS)
    refresher.refresh(AT, None, None)
    answer = refresher.fill_week(AT, week_at(LoadWeek(), AT), None, 10.0, is_needed=False)
    week = with_past(week_at(LoadWeek(), AT), answer.slots[0])
    # Two days of samples, of which the newer one is the day's.
    quarters = sorted(known_quarters(week))
    assert 90 <= len(quarters) <= 96
    assert quarters[-1] <= AT - 86_400 + 900
    row = week.means[week.nodes.index("plain")]
    assert row[~np.isnan(row)] == pytest.approx(0.5, abs=0.12)
    assert refresher.fill_week(AT, week, None, 10.0, is_needed=False).queries == 0


def test_the_week_of_a_large_cluster_is_queried_only_if_it_is_needed() -> None:
    large, progress = Survey({CPU: 320_000}, {CPU: 5_000}), PastProgress(WEEK)
    assert progress.next_query({}, AT, SETTINGS, large, most_samples=MOST_UNASKED_SAMPLES) is None
    query = progress.next_query({}, AT, SETTINGS, large)
    assert query is not None
    assert (query.piece.columns, query.piece.step_seconds) == (1, 900)
    recorded = replace(large, recorded=frozenset({CPU}))
    cheap = progress.next_query({}, AT, SETTINGS, recorded, most_samples=MOST_UNASKED_SAMPLES)
    assert cheap is not None
    assert cheap.is_recorded


def test_the_past_is_queried_again_once_the_names_of_nodes_are_known(client: PrometheusClient) -> None:
    refresher = SampleRefresher(client, SETTINGS)
    filled(refresher, refresher.refresh(AT, None, None))
    nodes = (
        a_node("worker-1", {"kubernetes.io/hostname": "plain"}),
        a_node("worker-2", {"kubernetes.io/hostname": "late"}),
    )
    result = refresher.refresh(AT, None, nodes)
    day = day_after(LoadDay(), complete_slots(result.samples, AT).values(), AT, ("worker-1", "worker-2"))
    answer = refresher.fill_day(AT, day, nodes, 10.0)
    assert [grid.nodes for grid in answer.slots] == [("worker-1", "worker-2")]
    assert np.count_nonzero(~np.isnan(answer.slots[0].values[0])) >= 18


def test_a_short_refresh_does_not_use_the_query_reserved_for_the_past(client: PrometheusClient) -> None:
    refresher = SampleRefresher(client, SETTINGS, refresh_seconds=5.0)
    assert refresher.refresh(AT, None, None, kept_queries=1).queries == 0
    assert refresher.refresh(AT, None, None).queries == 1


def test_samples_of_a_state_file_with_other_steps_are_not_used(client: PrometheusClient) -> None:
    saved = SampleRefresher(client, SETTINGS).refresh(AT - 60, None, None).samples
    shifted = {resource: replace(grid, end=grid.end + 7) for resource, grid in saved.grids.items()}
    result = SampleRefresher(client, SETTINGS).refresh(AT, SampleSet(shifted, from_file=True), None)
    assert result.failures == {}
    assert {grid.end for grid in result.samples.grids.values()} == {AT}


def test_an_answer_about_the_past_never_decides_which_exporter_measures_a_node(client: PrometheusClient) -> None:
    refresher = SampleRefresher(client, SETTINGS)
    before = refresher.refresh(AT - 3600, None, None).measured_by
    # Since then the queries for the newest samples have failed, and those for the past have not.
    for _ in range(3):
        assert refresher.fill_day(AT, LoadDay(), None, 10.0).failure == ""
    assert refresher.refresh(AT - 3600, None, None).measured_by == before


def test_the_past_is_not_queried_while_prometheus_is_unreachable() -> None:
    with PrometheusClient(PrometheusSettings("http://127.0.0.1:9")) as client:
        refresher = SampleRefresher(client, SETTINGS)
        refresher.refresh(AT, None, None)
        assert refresher.fill_day(AT, LoadDay(), None, 1.0).queries == 0
