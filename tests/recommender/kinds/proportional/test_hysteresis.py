"""A size follows a falling count only once the count is below the rung by the whole hysteresis."""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recommender.decisions.memory import Memory
from recommender.kinds.proportional.calculate import raised_count
from recommender.kinds.proportional.memory import restore_memory
from recommender.kinds.proportional.parameters import Ladder, Linear, Mode, ProportionalSettings
from tests.recommender.kinds.proportional.clusters import calculated, inputs_of, nodes_of, step_texts

if TYPE_CHECKING:
    from recommender.decisions.calculation import Calculation

LINEAR: Final = Linear(0, 20)
LADDER: Final = Ladder(nodes_to_replicas=((0, 1), (40, 3), (100, 5)))
MODES: Final = st.sampled_from([LINEAR, LADDER, Linear(0, 3.7), Linear(0, 1)])


def followed(mode: Mode, counts: list[int], ratio: float = 0.05) -> list[Calculation]:
    """Return the calculations for these counts of nodes, one after the other."""
    memory, calculations = Memory(), []
    for count in counts:
        proportional = ProportionalSettings(mode=mode, hysteresis_ratio=ratio)
        calculations.append(calculated(proportional, inputs_of(nodes_of(count, count)), memory))
        memory = Memory(own=calculations[-1].own)
    return calculations


@pytest.mark.parametrize(
    ("mode", "counts", "replicas"),
    [
        (LINEAR, [100, 101, 100, 96, 95], [5, 6, 6, 6, 5]),
        (LADDER, [100, 99, 96, 95, 94], [5, 5, 5, 5, 3]),
        (LADDER, [100, 39, 37], [5, 3, 1]),
        (LINEAR, [101, 40], [6, 3]),
        (LINEAR, [101, 0], [6, 1]),
        (Linear(20, 0), [100, 101, 100, 96, 95], [5, 6, 6, 6, 5]),
        (Linear(50, 20), [101, 99, 96, 95], [6, 6, 6, 5]),
        (Linear(20, 50), [101, 99, 96, 95], [6, 6, 6, 5]),
    ],
    ids=[
        "the linear rung of 6 begins above 100",
        "the rung at 100 is left below 95",
        "two rungs fall, and the lower one holds",
        "a fall to a rung holds on it",
        "nothing holds an empty cluster",
        "the same for a rung of cores",
        "the rung of nodes is above that of cores",
        "the rung of cores is above that of nodes",
    ],
)
def test_a_falling_count_changes_the_value_only_beyond_the_hysteresis(
    mode: Mode, counts: list[int], replicas: list[int]
) -> None:
    assert [calculation.replicas for calculation in followed(mode, counts)] == replicas


def test_raising_the_largest_count_does_not_overflow() -> None:
    assert raised_count(sys.float_info.max, 0.5) == sys.float_info.max


def test_a_held_value_is_recorded_as_a_step() -> None:
    [_, calculation] = followed(LINEAR, [101, 99])
    assert calculation.binding == "hysteresis"
    assert step_texts(calculation) == [
        "linear/nodes 5: ceil(99 / 20)",
        "largest 5: nodes 5",
        "hysteresis 6: nodes is not 5% below its rung yet",
    ]


def test_a_maximum_limits_a_held_value() -> None:
    before = Memory(own=followed(LINEAR, [101])[0].own)
    proportional = ProportionalSettings(mode=Linear(0, 20, max=5), hysteresis_ratio=0.05)
    assert calculated(proportional, inputs_of(nodes_of(99, 99)), before).replicas == 5


def test_a_value_is_not_held_after_the_mode_changes() -> None:
    before = Memory(own=followed(LINEAR, [101])[0].own)
    proportional = ProportionalSettings(mode=LADDER, hysteresis_ratio=0.05)
    after = calculated(proportional, inputs_of(nodes_of(99, 99)), before)
    assert (after.replicas, restore_memory(after.own).rungs) == (3, {"ladder/nodes": 3})


def test_without_hysteresis_nothing_is_remembered() -> None:
    before = Memory(own=followed(LINEAR, [101])[0].own)
    after = calculated(ProportionalSettings(mode=LINEAR), inputs_of(nodes_of(99, 99)), before)
    assert restore_memory(after.own).rungs == {}


COUNTS: Final = st.lists(st.integers(0, 200), min_size=1, max_size=12)


@settings(max_examples=50)
@given(mode=MODES, counts=COUNTS, ratio=st.sampled_from([0.01, 0.05, 0.3, 0.99]))
def test_a_held_value_is_never_too_small(mode: Mode, counts: list[int], ratio: float) -> None:
    held = followed(mode, counts, ratio)
    raw = [calculated(ProportionalSettings(mode=mode), inputs_of(nodes_of(count, count))) for count in counts]
    assert all((a.replicas or 0) >= (b.replicas or 0) for a, b in zip(held, raw, strict=True))


@settings(max_examples=50)
@given(mode=MODES, middle=st.integers(0, 200), swings=st.lists(st.sampled_from([0, 1]), min_size=2, max_size=12))
def test_a_count_that_swings_by_one_changes_the_value_once(mode: Mode, middle: int, swings: list[int]) -> None:
    values = [calculation.replicas for calculation in followed(mode, [middle + swing for swing in swings], 0.5)]
    changes = sum(before != after for before, after in pairwise(values))
    assert changes <= 1 or middle < 2
