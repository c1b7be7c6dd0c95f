from __future__ import annotations

import contextlib
import math

import pytest

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.metrics.readings.answers import ByName
from adapter.metrics.readings.asking.refresh_periods import Paces, longest_period, period_for
from adapter.metrics.readings.errors import NoSampleError
from adapter.metrics.readings.readings_settings import ReadingSettings
from tests.adapter.metrics.readings.asking.test_request_intervals import arrivals_at
from tests.support.readings import MadeUpObjects, ScriptedPrometheus, make_harness, reply

PODS = reply(({"pod": "web-0", "namespace": "shop"}, "1"), ({"pod": "web-0", "namespace": "bank"}, "2"))


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
