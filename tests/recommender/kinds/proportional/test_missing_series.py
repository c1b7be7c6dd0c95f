"""A sum that lacks series shrinks nothing until they are back, or until they have been missing for five minutes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.cluster.values.state import ClusterState, CountQuery, Observed, Unknown
from recommender.decisions.inputs import Inputs, QueryAnswer, TargetState
from recommender.decisions.loop import decide
from recommender.decisions.memory import LastValue, Memory
from recommender.decisions.policy_settings import RecommendationPolicy
from recommender.decisions.record import Status, TargetReference
from recommender.kinds.proportional.calculate import calculate_proportional
from recommender.kinds.proportional.parameters import Driver, DriverQuery, Linear, ProportionalSettings
from recommender.running.memory.memory_document import decode_memory, encode_memory

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recommender.decisions.loop import Decision

START: Final = 1_800_000_000.0
POLICY: Final = RecommendationPolicy("web", "proportional", stale_after_seconds=60.0)
TARGET: Final = TargetReference("apps/v1", "Deployment", "shop", "web")
TARGETED: Final = replace(POLICY, targets=(TARGET,))
QUERY: Final = Driver("query", DriverQuery("sum(load)"), per_replica=10)
PODS: Final = Driver("pods", CountQuery("pods"), per_replica=10)
SETTINGS: Final = ProportionalSettings(drivers=(QUERY,))
NO_ANSWER: Final = Unknown("Prometheus is down")
NO_PODS: Final = Unknown("the API server is down")
LATE: Final = Unknown("it has not been read", is_awaited=True)

Seen = tuple[float, float | Unknown | None, float | None]
"""Seconds since the start, the value of the query, and `whole_seconds` if it was looked up. Where the value is None the
process ends, and the next one has the memory that is stored."""


def decisions(
    seen: Iterable[Seen], proportional: ProportionalSettings = SETTINGS, pods: int | Unknown = 0
) -> list[Decision]:
    memory, found = Memory(), []
    for seconds, value, whole_seconds in seen:
        now = START + seconds
        if value is None:
            memory = decode_memory("web", encode_memory("web", memory)).memory
            continue
        found.append(
            decide(POLICY, calculate_proportional(proportional), inputs(value, whole_seconds, pods, now), memory, now)
        )
        memory = found[-1].memory
    return found


def inputs(value: float | Unknown, whole_seconds: float | None, pods: int | Unknown, now: float) -> Inputs:
    answer: Observed[float] | Unknown
    if isinstance(value, Unknown):
        answer = value
    else:
        answer = Observed(value, now) if whole_seconds is None else QueryAnswer(value, now, whole_seconds=whole_seconds)
    counted = pods if isinstance(pods, Unknown) else Observed(pods, now)
    return Inputs(ClusterState(counts={CountQuery("pods"): counted}), {"sum(load)": answer})


def targeted_decisions(
    polls: Iterable[tuple[Seen, TargetState | Unknown | None]],
    proportional: ProportionalSettings = SETTINGS,
    memory: Memory | None = None,
) -> list[Decision]:
    """Return the decisions for a target, whose state at each poll comes with what is seen then."""
    memory, found = memory or Memory(), []
    for (seconds, value, whole_seconds), state in polls:
        assert value is not None
        now = START + seconds
        facts = inputs(value, whole_seconds, 0, now)
        facts = replace(facts, cluster=replace(facts.cluster, nodes=Observed((), now)))
        target = state if isinstance(state, Unknown) else Observed(state, now)
        found.append(
            decide(
                TARGETED, calculate_proportional(proportional), replace(facts, targets={TARGET: target}), memory, now
            )
        )
        memory = found[-1].memory
    return found


@pytest.mark.parametrize(
    ("seen", "replicas"),
    [
        ([(0, 100.0, 300), (10, 10.0, 300)], [10, 1]),
        ([(0, 100.0, None), (10, 10.0, None)], [10, 1]),
        ([(0, 100.0, 300), (10, 10.0, 0), (309, 10.0, 0), (310, 10.0, 0)], [10, 10, 10, 1]),
        ([(0, 100.0, 300), (10, 10.0, 0), (20, 120.0, None), (30, 110.0, 0), (310, 10.0, 0)], [10, 10, 12, 12, 1]),
        ([(0, 100.0, 300), (10, 10.0, 0), (20, 20.0, 300)], [10, 10, 2]),
        ([(0, 100.0, 300), (10, 10.0, 0), (100, 10.0, 90)], [10, 10, 10]),
        ([(0, 100.0, 300), (10, NO_ANSWER, None), (20, 10.0, 0)], [10, 10, 10]),
        ([(0, 100.0, 300), (90, NO_ANSWER, None), (100, 10.0, 0), (400, 10.0, 0)], [10, None, 10, 1]),
        ([(0, 100.0, 300), (10, NO_ANSWER, None), (20, 10.0, 300)], [10, 10, 1]),
        ([(0, 100.0, 0), (50, 10.0, 50), (60, 10.0, 60)], [10, 10, 1]),
        ([(0, 100.0, 0), (30, 100.0, None), (70, 10.0, 70)], [10, 10, 1]),
        ([(0, 100.0, 0), (60, 100.0, 60), (120, 10.0, 0), (130, 10.0, 0), (420, 10.0, None)], [10, 10, 10, 10, 1]),
        ([(0, 100.0, 0), (60, 100.0, 60), (120, 10.0, 0), (130, 20.0, 130)], [10, 10, 10, 2]),
        ([(0, 100.0, 300), (10, None, None), (20, 10.0, 300)], [10, 1]),
        ([(0, 100.0, 300), (10, None, None), (20, 10.0, 0), (30, 20.0, 10), (320, 20.0, None)], [10, 10, 10, 2]),
        ([(0, 100.0, 300), (10, None, None), (20, NO_ANSWER, None), (30, 10.0, 10)], [10, 10, 10]),
        ([(0, NO_ANSWER, None), (10, 100.0, 0), (70, 10.0, 60)], [None, 10, 1]),
        ([(0, 100.0, 300), (10, 10.0, 0), (400, 10.0, 0), (410, 50.0, None), (420, 10.0, 0)], [10, 10, 1, 5, 5]),
        ([(0, 100.0, 300), (10, 10.0, 0), (-900, 10.0, 0), (-600, 10.0, 0)], [10, 10, 10, 1]),
    ],
    ids=[
        "a fall with all series",
        "a fall about whose series nothing is known, as with files",
        "a fall that lacks series, for ever",
        "a rise meanwhile is followed at once, and not taken back",
        "a fall that lacks series until they are back",
        "a restart of the source alone, more than a minute ago",
        "a fall that lacks series, after polls without an answer",
        "the same after longer than staleAfter",
        "a fall with all series after polls without an answer",
        "a source that is as young as the recommender, once a minute has passed",
        "the same, after a load that has not fallen",
        "such a source that loses its series",
        "the same until they are back",
        "a restart of the recommender alone",
        "a restart of the recommender and of its source",
        "the same, and the first answer leads to no size",
        "a recommender that began before its source",
        "series that are missing again",
        "a clock that is set back",
    ],
)
def test_only_a_sum_that_lacks_no_series_shrinks_a_size_before_five_minutes(
    seen: list[Seen], replicas: list[int | None]
) -> None:
    assert [each.record.replicas for each in decisions(seen)] == replicas


def test_one_query_that_lacks_series_keeps_the_size_beside_one_that_has_all() -> None:
    other = replace(QUERY, name="other", source=DriverQuery("sum(other)"))
    calculate, memory, found = calculate_proportional(ProportionalSettings(drivers=(QUERY, other))), Memory(), []
    for seconds, value, whole_seconds in ((0, 100.0, 300.0), (10, 10.0, 0.0)):
        now = START + seconds
        given = inputs(value, whole_seconds, 0, now)
        answers = {**given.queries, "sum(other)": QueryAnswer(0.0, now, whole_seconds=300.0)}
        found.append(decide(POLICY, calculate, replace(given, queries=answers), memory, now))
        memory = found[-1].memory
    assert [each.record.replicas for each in found] == [10, 10]


def test_a_kept_size_says_why_and_until_when() -> None:
    record = decisions([(0, 100.0, 300), (20, 10.0, 0)])[-1].record
    assert (record.status, record.replicas, record.binding) == (Status.HELD, 10, "missingSeries")
    assert record.message == (
        "10 is kept, and not reduced to 1, until 2027-01-15T08:05:20Z at the latest: the query has fewer series than "
        "before, or had none 300 s before, or Prometheus did not say how many, so its value may be a part of the load"
    )


def test_a_size_that_the_load_needs_again_is_not_held() -> None:
    record = decisions([(0, 100.0, 300), (10, 10.0, 0), (20, 100.0, 0)])[-1].record
    assert (record.status, record.replicas, record.binding) == (Status.OK, 10, "linear/query")


@pytest.mark.parametrize(
    ("current", "seen", "replicas"),
    [
        (10, [(0, 10.0, 0), (10, 20.0, 10), (50, 20.0, 50), (60, 20.0, 60)], [10, 10, 10, 2]),
        (10, [(0, 10.0, 300)], [1]),
        (10, [(0, 10.0, 0), (10, 120.0, 10)], [10, 12]),
        (10, [(0, 10.0, 0), (300, 10.0, 0)], [10, 1]),
        (1, [(0, 100.0, 0)], [10]),
        (0, [(0, 100.0, 0)], [10]),
        (None, [(0, 10.0, 0)], [1]),
    ],
    ids=[
        "a source that has just started",
        "a source that had all series five minutes before",
        "a rise",
        "series that never come back",
        "a smaller size",
        "a target without replicas",
        "a target that does not exist",
    ],
)
def test_without_a_memory_a_sum_that_may_lack_series_does_not_shrink_the_current_size(
    current: int | None, seen: list[tuple[float, float, float]], replicas: list[int]
) -> None:
    state = None if current is None else TargetState(current)
    found = targeted_decisions([(each, state) for each in seen])
    assert [each.record.replicas for each in found] == replicas


@pytest.mark.parametrize("late", [LATE, None], ids=["late", "created meanwhile"])
def test_a_target_that_is_known_later_is_not_shrunk_either(late: Unknown | None) -> None:
    polls: list[tuple[Seen, TargetState | Unknown | None]] = [
        ((0, 10.0, 0), late),
        ((10, 20.0, 10), TargetState(10)),
        ((20, 20.0, 20), late),
        ((59, 20.0, 59), TargetState(10)),
        ((60, 20.0, 60), TargetState(10)),
    ]
    found = targeted_decisions(polls)
    assert [each.record.replicas for each in found] == [1, 10, 10, 10, 2]


def test_a_size_that_was_recommended_before_a_restart_counts_more_than_the_current_one() -> None:
    before = Memory(last=LastValue(5, START - 10, START - 10))
    found = targeted_decisions([((0, 10.0, 0), TargetState(50))], memory=before)
    assert found[0].record.replicas == 5


@pytest.mark.parametrize(
    ("seen", "replicas"),
    [
        ([(0, 50.0, 300), (10, 50.0, None), (20, 10.0, 0)], [5, 5, 5]),
        ([(0, 50.0, 300), (10, NO_ANSWER, None), (20, 10.0, 0)], [5, 5, 5]),
        ([(0, 50.0, 0), (60, 50.0, 60), (300, 50.0, None), (310, 10.0, 0)], [20, 5, 5, 5]),
        ([(0, 50.0, 0), (60, 50.0, 60), (100, 10.0, 100)], [20, 5, 1]),
    ],
    ids=[
        "a source that had all series at the first answer",
        "the same, after an outage",
        "a source that began young, once it is old enough",
        "such a source with the series of its first minute",
    ],
)
def test_the_current_size_counts_only_while_the_source_of_the_first_size_is_young(
    seen: list[Seen], replicas: list[int]
) -> None:
    found = targeted_decisions([(each, TargetState(20)) for each in seen])
    assert [each.record.replicas for each in found] == replicas


def test_a_size_above_max_is_kept_within_it() -> None:
    limited = ProportionalSettings(mode=Linear(0, 20, max=10), drivers=(QUERY,))
    [found] = targeted_decisions([((0, 20.0, 0), TargetState(50))], limited)
    assert found.record.replicas == 10
    assert "10 is kept, and not reduced to 2, until" in found.record.message


def test_missing_series_outlast_an_api_server_that_does_not_answer() -> None:
    both = ProportionalSettings(drivers=(PODS, QUERY))
    before = decisions([(0, 100.0, 300)], both)[-1].memory
    without = inputs(10.0, 0, NO_PODS, START + 10)
    memory = decide(POLICY, calculate_proportional(both), without, before, START + 10).memory
    after = decide(POLICY, calculate_proportional(both), inputs(10.0, 0, 0, START + 20), memory, START + 20)
    assert after.record.replicas == 10


def test_a_wait_for_series_ends_later_if_the_clock_is_set_forward() -> None:
    memory = decisions([(0, 100.0, 300), (20, 10.0, 0)])[-1].memory.prolonged(3600.0)
    now = START + 3900
    found = decide(POLICY, calculate_proportional(SETTINGS), inputs(10.0, 0, 0, now), memory, now)
    assert found.record.replicas == 10


def test_a_wait_for_series_keeps_what_hysteresis_holds() -> None:
    found = decisions(
        [(0, 101.0, 300), (10, 10.0, 0), (20, 99.0, 300)], ProportionalSettings(drivers=(QUERY,), hysteresis_ratio=0.05)
    )
    assert [each.record.replicas for each in found] == [11, 11, 11]


VALUES: Final = st.lists(
    st.tuples(st.integers(0, 200).map(float), st.sampled_from([None, 0, 10, 300])), min_size=1, max_size=12
)


@settings(max_examples=100)
@given(VALUES)
def test_a_size_is_never_smaller_than_without_the_wait(seen: list[tuple[float, float | None]]) -> None:
    held = decisions([(10.0 * number, value, whole) for number, (value, whole) in enumerate(seen)])
    plain = decisions([(10.0 * number, value, None) for number, (value, _) in enumerate(seen)])
    assert all((a.record.replicas or 0) >= (b.record.replicas or 0) for a, b in zip(held, plain, strict=True))


@settings(max_examples=100)
@given(VALUES)
def test_five_minutes_without_a_rise_lead_to_the_size_of_the_value(seen: list[tuple[float, float | None]]) -> None:
    steps = [(10.0 * number, value, whole) for number, (value, whole) in enumerate(seen)]
    end = steps[-1][0]
    found = decisions([*steps, (end + 10, 10.0, 0), (end + 310, 10.0, 0)])
    assert found[-1].record.replicas == 1
