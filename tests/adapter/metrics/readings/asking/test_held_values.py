"""How many values are held, which requests are refused, and which values are dropped first."""

from __future__ import annotations

import contextlib
from functools import cache
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.objects.selectors import EVERYTHING, Selector, parse_selector
from adapter.metrics.readings.answers import ByName
from adapter.metrics.readings.asking.held_values import HeldValues, ReadingSize
from adapter.metrics.readings.errors import ReadingError, TooMuchDemandError
from adapter.metrics.readings.readings_settings import ReadingSettings
from adapter.metrics.rulebook.model import PlanKind
from tests.adapter.metrics.readings.asking.planning_harness import NAMESPACES, OBJECTS, answer_as_asked, refuse_wide
from tests.adapter.metrics.readings.asking.planning_harness import ask as ask_each
from tests.support.readings import Harness, MadeUpObjects, Reply, ScriptedPrometheus, make_harness, reply

if TYPE_CHECKING:
    from adapter.metrics.readings.asking.queries import Query

HELD = "tidewatch_adapter_values_held"
SHOP, BANK = [f"web-{n}" for n in range(10)], ["till-0", "till-1"]


def answer(query: str) -> Reply:
    """Return ten pods in shop and two in bank, with other values for each path."""
    path = query.partition('path="')[2].partition('"')[0] or "0"
    wanted = [("shop", pod) for pod in SHOP] * ('"shop"' in query) + [("bank", pod) for pod in BANK] * (
        '"bank"' in query
    )
    return reply(*(({"namespace": ns, "pod": pod}, path if path.isdigit() else "7") for ns, pod in wanted))


def harness_of(prometheus: ScriptedPrometheus, most: int, most_per_namespace: int) -> Harness:
    settings = ReadingSettings(
        max_values=most, max_values_per_namespace=most_per_namespace, once_asked_ttl_seconds=600, demand_ttl_seconds=600
    )
    return make_harness(prometheus, objects=MadeUpObjects({"shop": SHOP, "bank": BANK}), settings=settings)


def ask(harness: Harness, namespace: str = "shop", path: str = "") -> float:
    selector: Selector = parse_selector(f"path={path}") if path else EVERYTHING
    pod = "web-0" if namespace == "shop" else "till-0"
    ((_, value),) = harness.readings.objects(harness.pods("raw"), namespace, ByName(pod), selector).values
    return value


def test_a_namespace_at_its_limit_is_refused_new_values_and_keeps_the_held_ones() -> None:
    harness = harness_of(ScriptedPrometheus(answer=answer), 1000, 25)
    # Each namespace has its own queries, which count toward its own limit.
    assert [ask(harness, ns, str(n)) for n in (1, 2) for ns in ("bank", "shop")] == [1, 1, 2, 2]
    with pytest.raises(TooMuchDemandError, match=r"'shop': .* more than 25 values \(--max-values-per-namespace\)"):
        ask(harness, path="3")

    harness.pass_time(60)
    assert [ask(harness, path=str(n)) for n in (1, 2)] == [1, 2]
    assert ask(harness, "bank") == 0
    assert harness.counter(HELD) == 26


def test_a_query_that_serves_many_namespaces_counts_toward_the_limit_of_none() -> None:
    settings = ReadingSettings(max_values_per_namespace=len(NAMESPACES) - 1)
    harness = make_harness(ScriptedPrometheus(answer=answer_as_asked), objects=OBJECTS, settings=settings)
    assert [ask_each(harness, ns) for ns in NAMESPACES] == [0, 1, 2, 3, 4, 5]
    harness.pass_time(60)
    assert [ask_each(harness, ns) for ns in NAMESPACES] == [0, 1, 2, 3, 4, 5]
    assert harness.counter(HELD) == len(NAMESPACES)


def test_an_answer_that_grows_counts_instead_of_the_one_that_it_replaces() -> None:
    prometheus = ScriptedPrometheus(answer=lambda _query: reply(*(({"pod": pod}, "1") for pod in SHOP[:8])))
    harness = harness_of(prometheus, 1000, 15)
    assert ask(harness) == 1
    prometheus.answer = lambda _query: reply(*(({"pod": pod}, "2") for pod in SHOP))
    harness.pass_time(60)
    assert ask(harness) == 2
    assert harness.counter(HELD) == 10


def test_the_values_of_a_query_that_is_refused_are_released() -> None:
    prometheus = ScriptedPrometheus(answer=answer_as_asked)
    harness = make_harness(prometheus, objects=OBJECTS)
    for answer_with in (answer_as_asked, refuse_wide):
        prometheus.answer = answer_with
        for _ in range(10):
            harness.pass_time(15)
            assert [ask_each(harness, ns) for ns in NAMESPACES] == [0, 1, 2, 3, 4, 5]
    assert harness.counter(HELD) == len(NAMESPACES)


def test_equal_answers_of_many_selectors_are_held_once() -> None:
    harness = harness_of(ScriptedPrometheus(answer=answer), 1000, 15)

    assert [ask(harness, path=f"v{n}") for n in range(50)] == [7] * 50
    harness.pass_time(60)
    assert harness.counter(HELD) == 10


def test_an_answer_beyond_the_limit_is_an_error_once_the_last_good_one_is_too_old() -> None:
    prometheus = ScriptedPrometheus(answer=answer)
    harness = harness_of(prometheus, 1000, 15)
    assert ask(harness) == 0
    prometheus.answer = lambda _query: reply(*(({"pod": f"web-{n}"}, "1") for n in range(16)))
    harness.pass_time(40)
    assert ask(harness) == 0, "the last good answer"
    harness.pass_time(30)
    with pytest.raises(ReadingError, match="--max-values-per-namespace"):
        ask(harness)


def test_beyond_the_total_limit_the_namespace_with_the_most_values_loses_its_newest() -> None:
    harness = harness_of(ScriptedPrometheus(answer=answer), 31, 30)
    assert [ask(harness, path=str(n)) for n in (1, 2, 3)] == [1, 2, 3]

    assert ask(harness, "bank") == 0
    with pytest.raises(TooMuchDemandError, match=r"more than 31 values \(--max-values\)"):
        ask(harness, path="3")
    assert [ask(harness, path=str(n)) for n in (1, 2)] == [1, 2], "the newest was dropped"
    harness.pass_time(120)
    assert ask(harness, "bank") == 0
    assert harness.counter(HELD) <= 31


@pytest.mark.parametrize(("characters", "held"), [(400, 8), (40_000, 8 + 39_500 // 70), (100_000, 1418)])
def test_rows_are_weighted_by_the_length_of_their_labels(characters: int, held: int) -> None:
    """In an attack, a tenant's series with labels of 10 kB count as few values, and fill memory that tenants share."""
    labels = {"namespace": "shop", "note": "x" * (characters - len("shop"))}
    harness = harness_of(ScriptedPrometheus(answer=lambda _query: reply((labels, "1"))), 2000, 1000)
    refused = pytest.raises(TooMuchDemandError, match=r"'shop': .* more than 1000 values")
    with refused if held > 1000 else contextlib.nullcontext():
        harness.readings.external(harness.external("queue_depth"), "shop", EVERYTHING)
    assert harness.counter(HELD) == (0 if held > 1000 else held)


def test_values_are_released_when_demand_expires() -> None:
    harness = harness_of(ScriptedPrometheus(answer=answer), 1000, 10)
    ask(harness, path="1")
    for path in ("2", "3"):
        with contextlib.suppress(TooMuchDemandError):
            ask(harness, path=path)
    harness.pass_time(660, step=5)

    assert harness.counter(HELD) == 0
    assert ask(harness, path="9") == 9


def query(number: int, namespace: str) -> Query:
    harness = make_harness(ScriptedPrometheus(answer=answer), objects=MadeUpObjects({"shop": SHOP, "bank": BANK}))
    with contextlib.suppress(ReadingError):
        ask(harness, namespace, str(number))
    (found,) = harness.readings._scheduler.state.planner.queries.values()
    assert found.kind is PlanKind.NAMESPACE
    return found


@cache
def queries() -> list[tuple[Query, str]]:
    return [(query(number, namespace), namespace) for number in range(3) for namespace in ("shop", "bank")]


moves = st.tuples(st.integers(0, 5), st.integers(0, 8), st.integers(0, 12))


@given(st.lists(moves, max_size=60))
def test_the_number_of_held_values_is_exact_and_within_its_limits(steps: list[tuple[int, int, int]]) -> None:
    holdings = HeldValues(20, 14)
    held: dict[Query, ReadingSize] = {}
    for index, key, values in steps:
        asked, owner = queries()[index]
        # Equal parcels are of equal size, and of one namespace.
        parcel = ReadingSize(1000 * (owner == "bank") + 13 * key + values, values)
        verdict = holdings.judge(asked, parcel, owner, shared=False)
        if verdict.refusal is None:
            for other in verdict.shed:
                holdings.release(other)
                del held[other]
            holdings.hold(asked, parcel, owner, shared=False)
            held[asked] = parcel
        distinct = {parcel.key: parcel.values for parcel in held.values()}
        assert holdings.total == sum(distinct.values()) <= 20
        assert all(holdings._owned[namespace] <= 14 for namespace in ("shop", "bank"))
    for asked in held:
        holdings.release(asked)
    assert (holdings.total, holdings._owned["shop"], holdings._owned["bank"]) == (0, 0, 0)
