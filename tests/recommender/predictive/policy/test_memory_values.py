from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.predictive.policy.memory import PolicyMemory, ReconnectMemory, SessionMemory
from recommender.predictive.policy.memory_values import memory_of, values_of

TIMES = st.floats(0, 4e9)
LOADS = st.floats(0, 1e12)
REPLICAS = st.integers(0, 2**31 - 1)


def by_time(values: st.SearchStrategy[float]) -> st.SearchStrategy[tuple[tuple[float, float], ...]]:
    """Return times in ascending order with values in descending order."""
    return st.tuples(st.sets(TIMES, max_size=5), st.sets(values, min_size=5, max_size=5)).map(
        lambda found: tuple(zip(sorted(found[0]), sorted(found[1], reverse=True), strict=False))
    )


MEMORIES = st.builds(
    PolicyMemory,
    time=st.none() | TIMES,
    capacity=st.none() | st.floats(0, 2**31 - 1),
    wishes=by_time(REPLICAS),
    reconnect=st.builds(ReconnectMemory, by_time(LOADS), st.none() | TIMES),
    sessions=st.builds(
        SessionMemory,
        st.dictionaries(st.text(), LOADS, max_size=4).map(lambda pods: tuple(pods.items())),
        st.floats(1e-6, 1e12),
        LOADS,
    ),
)


@given(MEMORIES)
def test_a_memory_survives_as_numbers(memory: PolicyMemory) -> None:
    assert memory_of(values_of(memory)) == memory


@given(st.dictionaries(st.text(), st.floats()))
def test_numbers_that_somebody_has_edited_are_read_as_far_as_they_make_sense(values: dict[str, float]) -> None:
    memory_of(values)


@pytest.mark.parametrize("name", ["wish@", "wish@noon", "load@nan", "load@inf", "time@1", "other"])
def test_a_name_that_is_not_known_is_left_out(name: str) -> None:
    assert memory_of({name: 1.0}) == PolicyMemory()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_value_that_is_no_number_is_left_out(value: float) -> None:
    assert memory_of({"capacity": value, "wish@1.0": value}) == PolicyMemory()


EDITED: dict[str, dict[str, float]] = {
    "negative capacity": {"capacity": -5.0},
    "more than a scale can hold": {"capacity": 1e300, "wish@1.0": 1e300},
    "negative wish": {"wish@1.0": -3.0},
    "negative loads": {"load@1.0": -1.0},
    "sessions of negative length": {"openSeconds": -1000.0, "ended": 100.0},
    "sessions of no length": {"openSeconds": 0.0, "ended": 100.0},
    "ends below zero": {"ended": -1.0},
    "negative connections": {"closed:web-1": -1.0},
    "before the epoch": {"time": -1.0, "heldUntil": -1.0},
}


@pytest.mark.parametrize("values", EDITED.values(), ids=EDITED)
def test_numbers_that_no_decision_can_have_left_are_left_out(values: dict[str, float]) -> None:
    assert memory_of(values) == PolicyMemory()


def test_wishes_that_were_edited_still_begin_with_the_largest() -> None:
    assert memory_of({"wish@1.0": 3.0, "wish@2.0": 50.0, "wish@3.0": 4.0}).wishes == ((2.0, 50), (3.0, 4))
