"""Readings from a real Prometheus, whose own counters show how often it was queried."""

from __future__ import annotations

import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.metrics.readings.answers import ByName, BySelector
from adapter.metrics.readings.errors import (
    AmbiguousSamplesError,
    AnswerTooOldError,
    NoSampleError,
    PartialAnswerError,
    ReadingError,
    SourceUnreachableError,
)
from adapter.metrics.readings.readings_settings import ReadingSettings
from tests.support.readings import FakeClock, Harness, MadeUpObjects, make_harness
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.prometheus import ScrapedPrometheus

NAMESPACES = [f"ns{number}" for number in range(50)]
METRICS = [f"load{number}" for number in range(20)]
QUEUES = 1000
WEB = BySelector(parse_selector("app=web"))
OBJECTS = MadeUpObjects({ns: ["web-0", "web-1"] for ns in NAMESPACES})

RULES = """
rules:
- seriesQuery: '{__name__=~"^load.*",namespace!="",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})'
- seriesQuery: 'odd{namespace!="",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: '<<.Series>>{<<.LabelMatchers>>}'
externalRules:
- seriesQuery: 'queue_depth{namespace!=""}'
  resources: {overrides: {namespace: {resource: namespace}}}
  metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>})'
- seriesQuery: 'odd{namespace!=""}'
  name: {as: odd_rows}
  resources: {overrides: {namespace: {resource: namespace}}}
  metricsQuery: '<<.Series>>{<<.LabelMatchers>>}'
"""


def load_of(metric: str, namespace: str, pod: str) -> float:
    return 100.0 * METRICS.index(metric) + NAMESPACES.index(namespace) + (0.5 if pod == "web-1" else 0.0)


TEXT = "\n".join(
    [
        *(
            f'{metric}{{namespace="{ns}",pod="{pod}"}} {load_of(metric, ns, pod)}'
            for metric in METRICS
            for ns in NAMESPACES
            for pod in ("web-0", "web-1")
        ),
        *(f'queue_depth{{namespace="ns0",queue="q{n}",shard="{shard}"}} {n}' for n in range(QUEUES) for shard in "ab"),
        'odd{namespace="ns0",pod="nan",queue="n"} NaN',
        'odd{namespace="ns0",pod="inf",queue="n"} +Inf',
        'odd{namespace="ns0",pod="twice",queue="t",path="/a"} 1',
        'odd{namespace="ns0",pod="twice",queue="t",path="/b"} 2',
        'odd{namespace="ns0",pod="fine",queue="n"} 3',
        "",
    ]
)


@pytest.fixture(scope="module")
def prometheus(start_prometheus: Callable[..., ScrapedPrometheus]) -> ScrapedPrometheus:
    server = start_prometheus(stamped=True)
    server.publish(TEXT, seen='odd{pod="fine"}')
    return server


@pytest.fixture
def client(prometheus: ScrapedPrometheus) -> Iterator[PrometheusClient]:
    with closing(PrometheusClient(PrometheusSettings(url=prometheus.url))) as client:
        yield client


@pytest.fixture
def harness(client: PrometheusClient) -> Harness:
    # Time is moved by hand from the present on: Prometheus gives its last samples for moments up to 5 min later.
    clock = FakeClock(wall_offset=time.time() - 1000.0)
    harness = make_harness(client, objects=OBJECTS, rules=RULES, clock=clock)
    harness.pass_time(0.25)
    return harness


def test_a_value_of_another_time_is_not_served(prometheus: ScrapedPrometheus) -> None:
    behind = 0.0
    settings = PrometheusSettings(url=prometheus.url)
    with closing(PrometheusClient(settings, clock=lambda: time.time() - behind)) as client:
        clock = FakeClock(wall_offset=time.time() - 1000.0)
        harness = make_harness(client, objects=OBJECTS, rules=RULES, clock=clock)
        harness.pass_time(0.25)
        # The clock goes wrong after the metrics are known: a list of series of another time is refused as well.
        behind = 3600.0
        clock.wall_offset -= behind
        with pytest.raises(SourceUnreachableError, match=r"3[56]\d\d s behind Prometheus's"):
            ask(harness, "load0", "ns0")


def queries_counted(server: ScrapedPrometheus) -> int:
    """Return how many instant queries Prometheus has counted."""
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=10) as response:
        families = list(text_string_to_metric_families(response.read().decode()))
    return sum(
        int(sample.value)
        for family in families
        for sample in family.samples
        if sample.name == "prometheus_http_requests_total" and sample.labels["handler"] == "/api/v1/query"
    )


def ask(harness: Harness, metric: str, namespace: str) -> dict[str, float]:
    return dict(harness.readings.objects(harness.pods(metric), namespace, WEB, EVERYTHING).values)


def test_a_thousand_requests_for_pod_metrics_cost_one_query_per_metric_and_refresh(
    harness: Harness, prometheus: ScrapedPrometheus
) -> None:
    def request_all() -> None:
        for metric in METRICS:
            for ns in NAMESPACES:
                assert ask(harness, metric, ns) == {pod: load_of(metric, ns, pod) for pod in ("web-0", "web-1")}

    for _ in range(3):
        request_all()
        harness.pass_time(15)
    before = queries_counted(prometheus)
    for _ in range(4):
        request_all()
        harness.pass_time(15)

    # Asked again after 15 s, each metric is refreshed every 7.5 s.
    assert queries_counted(prometheus) - before == len(METRICS) * 60 / 7.5


def test_a_thousand_external_requests_with_a_thousand_selectors_cost_one_query_a_refresh(
    harness: Harness, prometheus: ScrapedPrometheus
) -> None:
    metric = harness.external("queue_depth")
    selectors = [parse_selector(f"queue=q{number}") for number in range(QUEUES)]

    def request_all() -> None:
        for number, selector in enumerate(selectors):
            rows = harness.readings.external(metric, "ns0", selector).rows
            assert [row.value for row in rows] == [2.0 * number]

    for _ in range(3):
        request_all()
        harness.pass_time(15)
    before = queries_counted(prometheus)
    for _ in range(4):
        request_all()
        harness.pass_time(15)

    assert queries_counted(prometheus) - before == 60 / 7.5


def test_an_answer_equals_the_query_result_at_its_time(harness: Harness, prometheus: ScrapedPrometheus) -> None:
    answer = harness.readings.objects(harness.pods("load3"), "ns7", WEB, EVERYTHING)
    expected = prometheus.query('sum by (pod) (load3{namespace="ns7"})', at=answer.evaluated_at)

    assert {sample["metric"]["pod"]: float(sample["value"][1]) for sample in expected} == dict(answer.values)


@pytest.mark.parametrize(
    ("pod", "error", "message"),
    [
        ("nan", NoSampleError, "its value is NaN"),
        ("inf", NoSampleError, "its value is infinite"),
        ("twice", AmbiguousSamplesError, "differ in path"),
        ("missing", NoSampleError, "no sample"),
    ],
)
def test_samples_without_a_usable_value_in_prometheus_are_errors(
    harness: Harness, pod: str, error: type[ReadingError], message: str
) -> None:
    with pytest.raises(error, match=message):
        harness.readings.objects(harness.pods("odd"), "ns0", ByName(pod), EVERYTHING)
    assert harness.readings.objects(harness.pods("odd"), "ns0", ByName("fine"), EVERYTHING).values == (("fine", 3.0),)


def test_external_rows_with_a_value_that_is_not_finite_are_an_error(harness: Harness) -> None:
    metric = harness.external("odd_rows")

    with pytest.raises(PartialAnswerError, match="2 of 3 series have no finite value"):
        harness.readings.external(metric, "ns0", parse_selector("queue=n"))
    assert len(harness.readings.external(metric, "ns0", parse_selector("queue=t")).rows) == 2


def test_a_wide_query_beyond_the_limit_of_prometheus_is_narrowed(
    start_prometheus: Callable[..., ScrapedPrometheus],
) -> None:
    limited = start_prometheus(extra_flags=["--query.max-samples=60"], stamped=True)
    limited.publish(TEXT, seen='odd{pod="fine"}')
    with closing(PrometheusClient(PrometheusSettings(url=limited.url))) as client:
        harness = make_harness(client, objects=OBJECTS, rules=RULES, real_time=True)
        harness.readings.run_due()

        for ns in NAMESPACES[:8]:
            assert ask(harness, "load3", ns) == {pod: load_of("load3", ns, pod) for pod in ("web-0", "web-1")}
        assert harness.counter("tidewatch_adapter_plan_narrowings_total", rule="rules[0]", plan="wide") == 1


def test_answers_survive_a_killed_prometheus_until_too_old_and_recover(
    start_prometheus: Callable[..., ScrapedPrometheus],
) -> None:
    """Answers go on until they are too old, and then give the reason; the recovery needs no help."""
    server = start_prometheus(stamped=True)
    server.publish(TEXT, seen='odd{pod="fine"}')
    over = threading.Event()
    settings = ReadingSettings(refresh_interval_seconds=1.0, max_answer_age_seconds=3.0)
    with closing(PrometheusClient(PrometheusSettings(url=server.url))) as client, ThreadPoolExecutor(8) as pool:
        harness = make_harness(
            client, objects=OBJECTS, rules=RULES, submit=pool.submit, settings=settings, real_time=True
        )

        def tick() -> None:
            while not over.wait(0.1):
                harness.readings.run_due()

        pool.submit(tick)
        try:
            expected = {pod: load_of("load3", "ns3", pod) for pod in ("web-0", "web-1")}
            until(lambda: harness.readings.catalogue.find_custom("pods", namespaced=True, name="load3"))
            assert ask(harness, "load3", "ns3") == expected
            server.prometheus.kill()
            assert ask(harness, "load3", "ns3") == expected
            reason = until(lambda: error_of(harness, "load3", expected))
            assert isinstance(reason, AnswerTooOldError)
            assert "refused" in reason.message
            with pytest.raises(SourceUnreachableError):
                ask(harness, "load4", "ns3")
            server.prometheus.start_again()
            until(lambda: error_of(harness, "load3", expected) is None)
            until(lambda: error_of(harness, "load4", None) is None)
        finally:
            over.set()


def error_of(harness: Harness, metric: str, expected: dict[str, float] | None) -> ReadingError | None:
    """Return the error of the answer, or None if there is a value, which must be the right one."""
    try:
        found = ask(harness, metric, "ns3")
    except ReadingError as error:
        return error
    assert expected in (None, found)
    return None
