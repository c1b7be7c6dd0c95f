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
    return st.dictionaries(TIMES, values, max_size=5).map(lambda found: tuple(sorted(found.items())))


MEMORIES = st.builds(
    PolicyMemory,
    time=st.none() | TIMES,
    capacity=st.none() | LOADS,
    wishes=st.dictionaries(TIMES, REPLICAS, max_size=5).map(lambda found: tuple(sorted(found.items()))),
    reconnect=st.builds(ReconnectMemory, by_time(LOADS), st.none() | TIMES),
    sessions=st.builds(
        SessionMemory, st.dictionaries(st.text(), LOADS, max_size=4).map(lambda pods: tuple(pods.items())), LOADS, LOADS
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
