"""A plan that Prometheus refuses for a while: which requests lose it, what is queried instead, and when it is back."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.foundation.sources.prometheus.errors import QueryRefusedError
from adapter.metrics.readings.answers import BySelector
from adapter.metrics.readings.asking.refused_plans import REQUESTS_A_TRIAL, WIDE_PLACE, Setbacks, pause_after
from adapter.metrics.readings.errors import ReadingError
from adapter.metrics.readings.readings_settings import ReadingSettings
from adapter.metrics.rulebook.model import PlanKind
from adapter.metrics.rulebook.parsing.resource_rules import PODS
from tests.adapter.metrics.readings.answering.usage_harness import ALL, answering, harness_of
from tests.adapter.metrics.readings.asking.planning_harness import NAMESPACES, OBJECTS, WEB, refuse_wide
from tests.support.readings import Harness, MadeUpObjects, ScriptedPrometheus, Threads, make_harness, reply

if TYPE_CHECKING:
    from adapter.foundation.sources.prometheus.errors import PrometheusError
    from tests.support.readings import Reply

WIDE = 'namespace!=""'
ANY_POD = 'pod!=""'
CHECKS = "tidewatch_adapter_plan_cross_checks_total"


@dataclass
class Join:
    """A query whose right-hand series are duplicated in some namespaces, and 20 clients with a request every 5 s."""

    namespaces: list[str]
    doubled: set[str] = field(default_factory=set)
    error: float = 0.0
    """The error that is added to the wide form's value."""

    def __post_init__(self) -> None:
        self.prometheus = ScriptedPrometheus(answer=self.answer)
        objects = MadeUpObjects({ns: [f"app{n}-0" for n in range(20)] for ns in self.namespaces})
        self.harness: Harness = make_harness(self.prometheus, objects=objects)
        self.asked = 0
        self.answers: Counter[str] = Counter()
        self.oldest = 0.0

    def answer(self, query: str) -> Reply | QueryRefusedError:
        named = self.namespaces if WIDE in query else [ns for ns in self.namespaces if f'"{ns}"' in query]
        if self.doubled & set(named):
            return QueryRefusedError(query, "execution", "found duplicate series for the match group")
        wrong = self.error if WIDE in query else 0.0
        return reply(*(({"namespace": ns, "pod": f"app{n}-0"}, str(n + wrong)) for ns in named for n in range(20)))

    def ask(self, number: int) -> None:
        self.asked += 1
        namespace = self.namespaces[number % len(self.namespaces)]
        which = BySelector(parse_selector(f"app=app{number}"))
        try:
            answer = self.harness.readings.objects(self.harness.pods("http_rps"), namespace, which, EVERYTHING)
        except ReadingError as error:
            self.answers[type(error).__name__] += 1
            return
        self.answers["good"] += 1
        assert answer.values == ((f"app{number}-0", float(number)),)
        self.oldest = max(self.oldest, self.harness.clock.clock.wall() - answer.evaluated_at)

    def run(self, seconds: int) -> tuple[int, int]:
        """Let all clients send requests for so long; return the number of requests and the number of queries."""
        asked, sent = self.asked, len(self.prometheus.asked)
        for _ in range(4 * seconds):
            self.ask(self.asked % 20)
            self.harness.pass_time(0.25)
        return self.asked - asked, len(self.prometheus.asked) - sent

    def trials(self) -> float:
        results = ("equal", "different", "failed")
        return sum(self.harness.counter(CHECKS, rule="rules[0]", result=result) for result in results)

    def is_wide(self) -> bool:
        sent = len(self.prometheus.asked)
        self.run(10)
        return all(WIDE in query for query in self.prometheus.asked[sent:])


MANY = [f"ns{number}" for number in range(10)]


@pytest.mark.parametrize(
    ("namespaces", "doubled"),
    [
        pytest.param(MANY, MANY[:1], id="one of ten namespaces"),
        pytest.param(MANY, MANY, id="all of ten namespaces"),
        pytest.param(["shop"], ["shop"], id="the only namespace"),
    ],
)
def test_a_join_that_fails_for_six_seconds_costs_at_most_one_query_per_request_besides_trials(
    namespaces: list[str], doubled: list[str]
) -> None:
    join = Join(namespaces)
    join.run(60)
    _, usual = join.run(20)
    join.answers.clear()
    join.doubled = set(doubled)
    windows = [join.run(2) for _ in range(3)]
    join.doubled = set()
    windows += [join.run(2) for _ in range(27)]

    requests, queries = 0, 0
    for came, sent in windows:
        requests, queries = requests + came, queries + sent
        assert queries <= requests + REQUESTS_A_TRIAL * join.trials()
    assert join.answers == {"good": requests}, "the last good answer stands in"
    assert join.oldest <= 16
    assert join.harness.counter("tidewatch_adapter_rule_plan", rule="rules[0]", plan="exact") == 0, "back by now"
    assert join.run(20)[1] <= usual + 1


def test_a_failure_in_one_namespace_narrows_only_that_namespace() -> None:
    join = Join(MANY)
    join.run(60)
    join.doubled = {"ns3"}
    join.run(90)
    sent = len(join.prometheus.asked)
    join.run(20)

    exact = [query for query in join.prometheus.asked[sent:] if ANY_POD not in query]
    namespaces = {
        ns for ns in MANY for query in join.prometheus.asked[sent:] if f'"{ns}"' in query and ANY_POD in query
    }
    assert exact
    assert all('"ns3"' in query for query in exact)
    assert namespaces >= set(MANY) - {"ns3"}


def test_a_wider_plan_that_differs_from_the_exact_query_is_not_used_again() -> None:
    join = Join(MANY)
    join.run(60)
    join.doubled = set(MANY)
    join.run(6)
    join.doubled, join.error = set(), 0.5
    join.run(120)

    assert join.harness.counter(CHECKS, rule="rules[0]", result="different") >= 2
    assert join.harness.counter("tidewatch_adapter_rule_plan", rule="rules[0]", plan="wide") == 0
    join.error = 0.0
    join.run(50)
    assert join.is_wide()


def refusing_the_wide_query() -> tuple[ScriptedPrometheus, Harness]:
    healthy = answering()

    def answer(query: str) -> Reply | PrometheusError | Exception:
        too_many = QueryRefusedError(query, "execution", "query processing would load too many samples into memory")
        return too_many if "cpu_used" in query and WIDE in query else healthy(query)

    prometheus = ScriptedPrometheus(answer)
    return prometheus, harness_of(prometheus, settings=ReadingSettings())


def narrow_and_wide_queries(
    requests: list[str | None], every_seconds: float
) -> tuple[list[tuple[float | None, str]], list[float | None]]:
    """Return the queries for CPU, by time, of those who list pods while the wide query is refused."""
    prometheus, harness = refusing_the_wide_query()
    for namespace in requests:
        harness.readings.usage(PODS, namespace, ALL)
        harness.pass_time(every_seconds)
    sent = [(at, query) for at, query in zip(prometheus.times, prometheus.asked, strict=True) if "cpu_used" in query]
    return [(at, query) for at, query in sent if WIDE not in query], [at for at, query in sent if WIDE in query]


@pytest.mark.parametrize(
    ("requests", "every_seconds"),
    [
        pytest.param([None] * 12, 60, id="a client that lists all namespaces every minute"),
        pytest.param(["shop"] * 20, 30, id="one namespace every 30 s"),
        pytest.param(["shop"] * 40, 15, id="one namespace as often as an HPA"),
        pytest.param(["shop", "other", None, "other", None] * 8, 15, id="one namespace less often than another"),
    ],
)
def test_trials_take_the_place_of_no_refresh(
    monkeypatch: pytest.MonkeyPatch, requests: list[str | None], every_seconds: float
) -> None:
    narrow, wide = narrow_and_wide_queries(requests, every_seconds)
    monkeypatch.setattr(Setbacks, "pay", lambda *_: False)
    without_trials, _ = narrow_and_wide_queries(requests, every_seconds)

    assert narrow == without_trials
    pauses = [later - earlier for earlier, later in pairwise(at or 0.0 for at in wide)]
    assert len(pauses) >= 5, "it is tried again and again"
    assert min(pauses[3:]) >= 40


@pytest.mark.parametrize(
    ("times", "every_seconds", "pause_seconds"),
    [
        pytest.param(1, 0, 70, id="once"),
        pytest.param(8, 15, 80, id="every 15 s"),
        pytest.param(8, 30, 90, id="every 30 s"),
        pytest.param(8, 60, 110, id="every minute"),
    ],
)
def test_a_client_that_returns_after_a_pause_waits_for_a_new_answer(
    times: int, every_seconds: float, pause_seconds: float
) -> None:
    """Nothing was sent during the pause, so that the last answer is too old although Prometheus answers."""
    _, harness = refusing_the_wide_query()
    for _ in range(times):
        harness.pass_time(every_seconds)
        harness.readings.usage(PODS, "shop", ALL)
    harness.pass_time(pause_seconds)

    answer = harness.readings.usage(PODS, "shop", ALL)
    assert not answer.warnings
    assert {name for item in answer.items for used in item.used.values() for name in used} == {"cpu", "memory"}


@pytest.mark.parametrize(
    ("failures", "lasting", "seconds"),
    [
        (1, False, 5),
        (2, False, 10),
        (3, False, 20),
        (4, False, 40),
        (9, False, 40),
        (9, True, 600),
        (10_000, True, 600),
    ],
)
def test_a_plan_is_retried_with_growing_pauses(failures: int, seconds: float, *, lasting: bool) -> None:
    assert pause_after(failures, lasting=lasting) == seconds


def test_few_plans_are_tried_at_once_since_each_trial_occupies_a_thread() -> None:
    threads = Threads()
    harness = make_harness(ScriptedPrometheus(answer=refuse_wide), objects=OBJECTS, submit=threads)
    for seconds in (0, 20):
        harness.pass_time(seconds)
        threads.held = seconds > 0
        for selector in map(parse_selector, ("path=a", "path=b", "path=c", "path=d")):
            for namespace in NAMESPACES:
                harness.readings.objects(harness.pods("http_rps"), namespace, WEB, selector)
    assert harness.readings._scheduler.state.rationed._trials.total() == 2


def test_a_plan_that_fails_again_at_once_continues_its_back_off() -> None:
    setbacks = Setbacks()
    for now in (0.0, 5.0):
        setbacks.fail(WIDE_PLACE, now)
    setbacks.lift(WIDE_PLACE, 15.0)
    setbacks.fail(WIDE_PLACE, 20.0)

    assert not setbacks.pay(WIDE_PLACE, 39.0)
    assert setbacks.pay(WIDE_PLACE, 40.0)


def test_restoring_the_wide_plan_restores_all_and_a_namespace_only_itself() -> None:
    setbacks = Setbacks()
    for place in (WIDE_PLACE, (PlanKind.NAMESPACE, "a"), (PlanKind.NAMESPACE, "b")):
        setbacks.fail(place, 0.0)
    setbacks.lift((PlanKind.NAMESPACE, "a"), 1.0)
    assert set(setbacks) == {WIDE_PLACE, (PlanKind.NAMESPACE, "b")}
    setbacks.lift(WIDE_PLACE, 2.0)
    assert not setbacks


@given(st.lists(st.tuples(st.sampled_from(["ask", "refuse"]), st.floats(0.0, 30.0)), max_size=80))
def test_trials_send_at_most_one_query_per_request(steps: list[tuple[str, float]]) -> None:
    setbacks, now, requests, queries = Setbacks(), 0.0, 0, 0
    setbacks.fail(WIDE_PLACE, now)
    for what, seconds in steps:
        now += seconds
        if what == "refuse":
            setbacks.fail(WIDE_PLACE, now)
            continue
        requests += 1
        if setbacks.pay(WIDE_PLACE, now) and setbacks.begin(WIDE_PLACE):
            queries += 2
        assert queries <= requests
