from __future__ import annotations

import contextlib

import pytest

from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.foundation.sources.prometheus.errors import PrometheusUnreachableError
from adapter.metrics.readings.answers import ByName, BySelector
from adapter.metrics.readings.errors import AnswerTooOldError, NoSampleError, TooMuchDemandError
from adapter.metrics.readings.readings_settings import ReadingSettings
from adapter.metrics.readings.retries import retry_after
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
    with pytest.raises(TooMuchDemandError, match=r"namespace 'shop'.* each counts once for each KiB of its selectors"):
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
    with pytest.raises(AnswerTooOldError, match="Connection refused; the last good answer is from "):
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


@pytest.mark.parametrize(("failures", "seconds"), [(1, 1.0), (2, 2.0), (3, 4.0), (4, 5.0), (50, 5.0), (100_000, 5.0)])
def test_retries_back_off_to_a_few_seconds(failures: int, seconds: float) -> None:
    assert retry_after(failures, 10.0) == seconds


def test_retries_are_at_least_as_frequent_as_refreshes() -> None:
    assert retry_after(10, 1.5) == 1.5
