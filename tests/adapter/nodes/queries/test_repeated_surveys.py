"""Surveys of exporters after outages: repeated soon, trusted only if whole, and in parts if they are too long."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import pytest

from adapter.foundation.sources.prometheus.errors import (
    PrometheusError,
    PrometheusTimeoutError,
    PrometheusUnreachableError,
    QueryRefusedError,
    UnexpectedAnswerError,
)
from adapter.nodes.model.day import LoadDay
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.scheduling_settings import SchedulingSettings
from adapter.nodes.queries.query_steps import queries_allowed
from adapter.nodes.queries.refresher import SampleRefresher
from adapter.nodes.queries.series_survey import SURVEY_SECONDS, survey_parts
from adapter.nodes.snapshot.refresh_logs import RefreshReports
from tests.adapter.nodes.queries.scripted_samples import INTERVAL, PARTS, START, Surveyed

if TYPE_CHECKING:
    from adapter.foundation.sources.prometheus.answers.ranges import RangeReader
    from adapter.foundation.sources.prometheus.queries.client import PrometheusClient


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
