"""The first requests for a metric wait for its query, even while Prometheus hangs or many come at once."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.foundation.sources.prometheus.errors import QueryRefusedError
from adapter.metrics.readings.answers import ByName, BySelector, ObjectsAnswer
from adapter.metrics.readings.errors import FirstAnswerPendingError, ObjectsNotKnownError, SourceSlowError
from adapter.metrics.readings.readings_settings import ReadingSettings
from tests.support.readings import Harness, MadeUpObjects, ScriptedPrometheus, make_harness, reply
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.readings import Reply

PODS = reply(({"pod": "web-0", "namespace": "shop"}, "1"))
NOT_LONG = 0.05


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(max_workers=24) as executor:
        yield executor


def hanging(pool: ThreadPoolExecutor, wait: float, waiting: int = 8) -> tuple[Harness, ScriptedPrometheus]:
    prometheus = ScriptedPrometheus(answer=lambda _query: PODS)
    prometheus.gate.clear()
    settings = ReadingSettings(first_answer_wait_seconds=wait, max_waiting_requests=waiting)
    return make_harness(prometheus, submit=pool.submit, settings=settings, real_time=True), prometheus


def ask(harness: Harness, name: str = "http_rps", pod: str = "web-0") -> ObjectsAnswer:
    return harness.readings.objects(harness.pods(name), "shop", ByName(pod), EVERYTHING)


def waiting(harness: Harness) -> int:
    return harness.readings._current_readings._waiting.total()


def test_many_first_requests_wait_for_one_query(pool: ThreadPoolExecutor) -> None:
    harness, prometheus = hanging(pool, wait=20)
    futures = [pool.submit(ask, harness) for _ in range(4)]
    until(lambda: waiting(harness) == 4)
    prometheus.gate.set()

    assert {future.result().values for future in futures} == {(("web-0", 1.0),)}
    assert len(prometheus.asked) == 1
    assert waiting(harness) == 0


def test_a_first_request_times_out_and_its_query_serves_later_ones(pool: ThreadPoolExecutor) -> None:
    harness, prometheus = hanging(pool, wait=NOT_LONG)
    with pytest.raises(SourceSlowError, match=r"did not answer within 0\.05 s, and the query continues: sum by"):
        ask(harness)
    prometheus.gate.set()
    until(lambda: bool(harness.counter("tidewatch_adapter_refreshes_total", result="ok")))

    assert ask(harness).values == (("web-0", 1.0),)
    assert len(prometheus.asked) == 1


def test_the_number_of_waiting_requests_is_bounded_and_others_fail_at_once(pool: ThreadPoolExecutor) -> None:
    harness, prometheus = hanging(pool, wait=20, waiting=2)
    futures: list[Future[ObjectsAnswer]] = [
        pool.submit(ask, harness, "http_rps", f"web-{number}") for number in range(2)
    ]
    until(lambda: waiting(harness) == 2)

    with pytest.raises(SourceSlowError, match="at most 2 requests wait at once"):
        ask(harness, "raw")
    prometheus.gate.set()
    assert futures[0].result().values == (("web-0", 1.0),)
    until(lambda: waiting(harness) == 0)
    until(lambda: harness.counter("tidewatch_adapter_refreshes_total", result="ok") == 2)
    assert ask(harness, "raw").values == (("web-0", 1.0),)


def test_a_known_answer_is_returned_even_if_no_more_requests_may_wait(pool: ThreadPoolExecutor) -> None:
    harness, prometheus = hanging(pool, wait=20, waiting=1)
    prometheus.gate.set()
    first = ask(harness)
    prometheus.gate.clear()
    stuck = pool.submit(ask, harness, "raw")
    until(lambda: waiting(harness) == 1)

    assert ask(harness) == first
    prometheus.gate.set()
    assert stuck.result().values == first.values


def test_a_first_request_keeps_waiting_while_the_plan_is_narrowed(pool: ThreadPoolExecutor) -> None:
    harness, prometheus = hanging(pool, wait=20)

    def refuse_wider(query: str) -> Reply | QueryRefusedError:
        return QueryRefusedError(query, "execution", "no") if 'pod!=""' in query else PODS

    prometheus.answer = refuse_wider
    futures = [pool.submit(ask, harness) for _ in range(4)]
    until(lambda: waiting(harness) == 4)
    prometheus.gate.set()

    assert {future.result().values for future in futures} == {(("web-0", 1.0),)}
    assert len(prometheus.asked) == 2


def test_a_request_waits_for_the_first_list_of_a_kind() -> None:
    objects = MadeUpObjects({"shop": ["web-0"]}, not_synced=True, syncs_when_awaited=True)
    harness = make_harness(ScriptedPrometheus(answer=lambda _query: PODS), objects=objects)
    answer = harness.readings.objects(harness.pods("http_rps"), "shop", BySelector(EVERYTHING), EVERYTHING)
    assert answer.values == (("web-0", 1.0),)
    assert objects.awaited == [ReadingSettings().first_answer_wait_seconds]


def test_a_list_that_does_not_arrive_in_time_is_an_error() -> None:
    objects = MadeUpObjects({"shop": ["web-0"]}, not_synced=True)
    harness = make_harness(ScriptedPrometheus(answer=lambda _query: PODS), objects=objects)
    with pytest.raises(ObjectsNotKnownError, match="the first list of pods has not arrived yet"):
        harness.readings.objects(harness.pods("http_rps"), "shop", BySelector(EVERYTHING), EVERYTHING)
    assert len(objects.awaited) == 1


def test_the_number_of_requests_that_wait_for_a_list_is_bounded(pool: ThreadPoolExecutor) -> None:
    harness, prometheus = hanging(pool, wait=20, waiting=1)
    objects = harness.readings._sources.objects
    assert isinstance(objects, MadeUpObjects)
    first = pool.submit(ask, harness)
    until(lambda: waiting(harness) == 1)
    objects.not_synced = True
    with pytest.raises(ObjectsNotKnownError):
        harness.readings.objects(harness.pods("raw"), "shop", BySelector(EVERYTHING), EVERYTHING)
    assert not objects.awaited
    prometheus.gate.set()
    assert first.result(20).values


MATCHED = """
rules:
- seriesQuery: '{__name__=~"^app_.*",namespace!="",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  name: {matches: "^app_(.*)$"}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})'
"""


def looking_up(pool: ThreadPoolExecutor, wait: float, go_on: threading.Event) -> Harness:
    """Return readings whose first look-ups of series end when the test says so."""

    def series(_: str) -> list[dict[str, str]]:
        assert go_on.wait(30)
        return [{"__name__": "app_rps", "namespace": "shop", "pod": "web-0"}]

    settings = ReadingSettings(first_answer_wait_seconds=wait, max_waiting_requests=3)
    prometheus = ScriptedPrometheus(series_answer=series)
    harness = make_harness(prometheus, rules=MATCHED, submit=pool.submit, settings=settings, real_time=True)
    harness.readings.run_due()
    return harness


def test_a_request_for_an_unknown_metric_waits_for_the_first_look_ups(pool: ThreadPoolExecutor) -> None:
    go_on = threading.Event()
    harness = looking_up(pool, 20, go_on)
    futures = [pool.submit(harness.readings.complete_catalogue, "shop") for _ in range(3)]
    until(lambda: waiting(harness) == 3)
    with pytest.raises(FirstAnswerPendingError, match="still being looked up for the first time"):
        harness.readings.complete_catalogue("bank")
    go_on.set()

    assert [{metric.name for metric in each.result().custom} for each in futures] == [{"rps"}] * 3
    assert waiting(harness) == 0


def test_a_request_times_out_waiting_for_the_first_look_ups_and_later_does_not_wait(pool: ThreadPoolExecutor) -> None:
    go_on = threading.Event()
    harness = looking_up(pool, NOT_LONG, go_on)
    with pytest.raises(FirstAnswerPendingError, match="still being looked up for the first time"):
        harness.readings.complete_catalogue("shop")
    assert waiting(harness) == 0
    go_on.set()
    until(harness.readings.has_looked_up_all)

    assert {metric.name for metric in harness.readings.complete_catalogue("shop").custom} == {"rps"}
