from __future__ import annotations

import contextlib
import math

import pytest

from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.foundation.sources.prometheus.errors import PrometheusUnreachableError
from adapter.metrics.readings.answers import ByName, BySelector
from adapter.metrics.readings.asking.demand import Paces, longest_period, period_for
from adapter.metrics.readings.errors import AnswerTooOldError, NoSampleError, TooMuchDemandError
from adapter.metrics.readings.readings_settings import ReadingSettings
from adapter.metrics.readings.retries import retry_after
from tests.adapter.metrics.readings.asking.test_request_intervals import arrivals_at
from tests.support.readings import MadeUpObjects, ScriptedPrometheus, make_harness, reply

PODS = reply(({"pod": "web-0", "namespace": "shop"}, "1"), ({"pod": "web-0", "namespace": "bank"}, "2"))


def test_the_demand_of_a_namespace_is_bounded_without_affecting_others() -> None:
    prometheus = ScriptedPrometheus(answer=lambda _query: PODS)
    harness = make_harness(prometheus, settings=ReadingSettings(max_demand_per_namespace=2))
    metric, raw = harness.pods("http_rps"), harness.pods("raw")
    harness.readings.objects(metric, "shop", ByName("web-0"), EVERYTHING)
    harness.readings.objects(raw, "shop", ByName("web-0"), EVERYTHING)

    with pytest.raises(TooMuchDemandError, match="namespace 'shop': 2 different requests are in demand already"):
        harness.readings.objects(metric, "shop", ByName("web-1"), EVERYTHING)

    assert harness.readings.objects(metric, "shop", ByName("web-0"), EVERYTHING).values == (("web-0", 1.0),)
    assert harness.readings.objects(metric, "bank", ByName("web-0"), EVERYTHING).values == (("web-0", 2.0),)


@pytest.mark.parametrize("api", ["external", "objects", "labels"])
def test_requests_are_weighted_by_the_length_of_their_selectors(api: str) -> None:
    """In an attack, 2000 requests with selectors of 60 kB took more than 1 GB of the adapter that all tenants share."""
    objects = MadeUpObjects({"shop": ["web-0"], "bank": ["web-0"]})
    settings = ReadingSettings(max_demand_per_namespace=10, demand_ttl_seconds=60)
    harness = make_harness(ScriptedPrometheus(), objects=objects, settings=settings)

    def ask(number: int, namespace: str = "shop") -> None:
        values = ",".join(f"v{value:03}-{number}" for value in range(500))
        long, metric = parse_selector(f"a notin ({values})"), harness.pods("http_rps")
        with contextlib.suppress(NoSampleError):
            if api == "external":
                harness.readings.external(harness.external("queue_depth"), namespace, long)
            elif api == "objects":
                harness.readings.objects(metric, namespace, ByName("web-0"), long)
            else:
                harness.readings.objects(metric, namespace, BySelector(long), EVERYTHING)

    for number in range(3):
        ask(number)
    with pytest.raises(TooMuchDemandError, match=r"namespace 'shop'.* one counts once for each KiB of its selectors"):
        ask(3)
    ask(0)
    ask(3, "bank")
    harness.pass_time(130)
    ask(3)


def test_the_demand_of_all_namespaces_together_is_bounded() -> None:
    harness = make_harness(ScriptedPrometheus(), settings=ReadingSettings(max_demand=3))
    for number in range(3):
        harness.readings.external(harness.external("queue_depth"), f"made-up-{number}", EVERYTHING)

    with pytest.raises(TooMuchDemandError, match="3 different requests are in demand already in all namespaces"):
        harness.readings.external(harness.external("queue_depth"), "made-up-4", EVERYTHING)
    harness.readings.external(harness.external("queue_depth"), "made-up-1", EVERYTHING)


def test_two_hundred_autoscalers_of_one_metric_cost_eight_queries_a_minute() -> None:
    prometheus = ScriptedPrometheus(answer=lambda _query: PODS)
    objects = MadeUpObjects({"shop": [f"app{number}-0" for number in range(200)]})
    harness = make_harness(prometheus, objects=objects, settings=ReadingSettings(refresh_interval_seconds=2))
    metric, others = harness.pods("http_rps"), [harness.pods("raw"), harness.pods("only_exact")]
    for other in others:
        with contextlib.suppress(NoSampleError):
            harness.readings.objects(other, "shop", ByName("app0-0"), EVERYTHING)

    def one_round() -> None:
        for number in range(200):
            with contextlib.suppress(NoSampleError):
                harness.readings.objects(metric, "shop", ByName(f"app{number}-0"), EVERYTHING)
            harness.pass_time(0.075, step=0.075)

    for _ in range(6):
        one_round()
    before = len(prometheus.asked)
    for _ in range(4):
        one_round()

    assert len(prometheus.asked) - before <= 10


def test_a_refused_request_sends_no_query() -> None:
    prometheus = ScriptedPrometheus(answer=lambda _query: PODS)
    harness = make_harness(prometheus, settings=ReadingSettings(max_demand_per_namespace=1))
    harness.readings.objects(harness.pods("http_rps"), "shop", ByName("web-0"), EVERYTHING)

    with pytest.raises(TooMuchDemandError):
        harness.readings.objects(harness.pods("raw"), "shop", ByName("web-0"), EVERYTHING)

    assert len(prometheus.asked) == 1


def test_demand_that_is_not_repeated_expires() -> None:
    prometheus = ScriptedPrometheus(answer=lambda _query: PODS)
    harness = make_harness(prometheus, settings=ReadingSettings(max_demand_per_namespace=1, demand_ttl_seconds=60))
    harness.readings.objects(harness.pods("http_rps"), "shop", ByName("web-0"), EVERYTHING)
    harness.pass_time(66)
    asked = len(prometheus.asked)
    harness.pass_time(60)

    assert asked == 7
    assert len(prometheus.asked) == asked
    assert harness.counter("tidewatch_adapter_demanded_metrics") == 0
    harness.readings.objects(harness.pods("raw"), "shop", ByName("web-0"), EVERYTHING)


def test_repeated_demand_does_not_expire() -> None:
    prometheus = ScriptedPrometheus(answer=lambda _query: PODS)
    harness = make_harness(prometheus, settings=ReadingSettings(demand_ttl_seconds=60))
    metric = harness.pods("http_rps")
    for _ in range(5):
        harness.readings.objects(metric, "shop", ByName("web-0"), EVERYTHING)
        harness.pass_time(50)

    assert harness.counter("tidewatch_adapter_demanded_metrics") == 1


@pytest.mark.parametrize(("interval", "queries_a_minute"), [(30.0, 4), (60.0, 2), (15.0, 8), (4.0, 30), (1.0, 60)])
def test_a_metric_is_refreshed_twice_in_the_interval_of_its_requests(interval: float, queries_a_minute: int) -> None:
    prometheus = ScriptedPrometheus(answer=lambda _query: PODS)
    harness = make_harness(prometheus)
    metric = harness.pods("http_rps")

    def ask_for(seconds: float) -> None:
        for _ in range(round(seconds / interval)):
            harness.readings.objects(metric, "shop", ByName("web-0"), EVERYTHING)
            harness.pass_time(interval)

    ask_for(60)
    before = len(prometheus.asked)
    ask_for(120)

    assert len(prometheus.asked) - before == pytest.approx(2 * queries_a_minute, abs=2)


def test_a_request_that_stops_is_forgotten_after_four_of_its_intervals() -> None:
    prometheus = ScriptedPrometheus(answer=lambda _query: PODS)
    harness = make_harness(prometheus)
    for _ in range(5):
        harness.readings.objects(harness.pods("http_rps"), "shop", ByName("web-0"), EVERYTHING)
        harness.pass_time(1)
    harness.pass_time(10)
    before = len(prometheus.asked)
    harness.pass_time(60)

    assert len(prometheus.asked) == before
    assert harness.counter("tidewatch_adapter_demanded_metrics") == 0


@pytest.mark.parametrize("interval", [0.25, 1.0, 5.0])
@pytest.mark.parametrize("asked_before_the_end", [0, 1, 3])
def test_a_client_that_pauses_during_an_outage_is_served_until_the_answer_is_too_old(
    interval: float, asked_before_the_end: int
) -> None:
    """A client with four requests a second that pauses for a second must not lose an answer that is still good."""
    away = False
    gone = PrometheusUnreachableError("up", "Connection refused")
    prometheus = ScriptedPrometheus(answer=lambda _query: gone if away else PODS)
    harness = make_harness(prometheus)
    metric = harness.pods("http_rps")
    for _ in range(8):
        harness.readings.objects(metric, "shop", ByName("web-0"), EVERYTHING)
        harness.pass_time(interval)
    harness.pass_time(asked_before_the_end * interval)
    away = True
    harness.pass_time(50)

    assert harness.readings.objects(metric, "shop", ByName("web-0"), EVERYTHING).values == (("web-0", 1.0),)
    harness.pass_time(30)
    with pytest.raises(AnswerTooOldError, match=r"Connection refused; the last good answer is 8\d s old"):
        harness.readings.objects(metric, "shop", ByName("web-0"), EVERYTHING)


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [
        pytest.param(ReadingSettings(), 130, id="twice the longest age of an answer"),
        pytest.param(ReadingSettings(demand_ttl_seconds=20), 26, id="the longest time of a request"),
    ],
)
def test_demand_that_is_not_repeated_is_forgotten_during_an_outage(settings: ReadingSettings, seconds: float) -> None:
    away = False
    gone = PrometheusUnreachableError("up", "Connection refused")
    prometheus = ScriptedPrometheus(answer=lambda _query: gone if away else PODS)
    harness = make_harness(prometheus, settings=settings)
    for _ in range(8):
        harness.readings.objects(harness.pods("http_rps"), "shop", ByName("web-0"), EVERYTHING)
        harness.pass_time(1)
    away = True
    harness.pass_time(seconds)

    assert harness.counter("tidewatch_adapter_demanded_metrics") == 0


@pytest.mark.parametrize(
    ("requests", "period"),
    [
        pytest.param([(0.0,)], 2.0, id="no interval is known: the refresh interval"),
        pytest.param([(0.0, 15.0)], 7.5, id="half of the interval"),
        pytest.param([(0.0, 15.0), (14.0,)], 7.5, id="a single request counts only while no interval is known"),
        pytest.param([(0.0, 15.0), (0.0, 5.0, 10.0)], 2.5, id="half of the shortest"),
        pytest.param([(-600.0, 0.0)], 49.0, id="never so seldom that an answer is too old"),
    ],
)
def test_a_query_is_due_after_half_of_the_shortest_known_interval(
    requests: list[tuple[float, ...]], period: float
) -> None:
    settings, paces = ReadingSettings(refresh_interval_seconds=2.0), Paces()
    metric = make_harness(ScriptedPrometheus()).pods("http_rps")
    assert longest_period(metric, settings) == 2.0
    for moments in requests:
        arrivals = arrivals_at(*moments)
        paces.add(metric, arrivals, arrivals.last, settings)

    assert paces.seconds == pytest.approx(period)


@pytest.mark.parametrize(
    ("interval", "period"),
    [(math.inf, 10.0), (60.0, 10.0), (20.0, 10.0), (15.0, 7.5), (4.0, 2.0), (1.0, 1.0), (0.3, 1.0)],
)
def test_the_period_is_half_of_the_interval_within_bounds(interval: float, period: float) -> None:
    assert period_for(interval, 10.0) == period


@pytest.mark.parametrize(("failures", "seconds"), [(1, 1.0), (2, 2.0), (3, 4.0), (4, 5.0), (50, 5.0), (100_000, 5.0)])
def test_retries_back_off_to_a_few_seconds(failures: int, seconds: float) -> None:
    assert retry_after(failures, 10.0) == seconds


def test_retries_are_at_least_as_frequent_as_refreshes() -> None:
    assert retry_after(10, 1.5) == 1.5
