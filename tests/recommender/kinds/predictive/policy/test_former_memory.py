"""The memory of the policy as versions before schema version 5 stored it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.kinds.predictive.policy.former_memory import memory_of
from recommender.kinds.predictive.policy.memory import PolicyMemory


@given(st.dictionaries(st.text(), st.floats()))
def test_memory_with_arbitrary_names_and_numbers_can_be_read(values: dict[str, float]) -> None:
    memory_of(values)


@pytest.mark.parametrize("name", ["wish@", "wish@noon", "load@nan", "load@inf", "time@1", "other"])
def test_an_unknown_name_is_ignored(name: str) -> None:
    assert memory_of({name: 1.0}) == PolicyMemory()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_nan_or_infinite_value_is_ignored(value: float) -> None:
    assert memory_of({"capacity": value, "wish@1.0": value}) == PolicyMemory()


EDITED: dict[str, dict[str, float]] = {
    "negative capacity": {"capacity": -5.0},
    "more than a scale can hold": {"capacity": 1e300, "wish@1.0": 1e300},
    "negative size": {"wish@1.0": -3.0},
    "negative loads": {"load@1.0": -1.0},
    "sessions of negative length": {"openSeconds": -1000.0, "ended": 100.0},
    "sessions of no length": {"openSeconds": 0.0, "ended": 100.0},
    "ends below zero": {"ended": -1.0},
    "negative connections": {"closed:web-1": -1.0},
    "before the epoch": {"time": -1.0, "heldUntil": -1.0},
}


@pytest.mark.parametrize("values", EDITED.values(), ids=EDITED)
def test_impossible_values_are_ignored(values: dict[str, float]) -> None:
    assert memory_of(values) == PolicyMemory()


def test_edited_sizes_still_begin_with_the_largest() -> None:
    assert memory_of({"wish@1.0": 3.0, "wish@2.0": 50.0, "wish@3.0": 4.0}).desired_sizes == ((2.0, 50), (3.0, 4))
