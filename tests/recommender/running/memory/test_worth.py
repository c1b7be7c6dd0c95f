"""Which changes of a memory are stored at once, and which can wait."""

from __future__ import annotations

import pytest

from recommender.decisions.memory import LastValue, Memory
from recommender.running.memory.worth import is_urgent

NOW = 1_800_000_000.0


def remembered(**policy: float) -> Memory:
    return Memory(last=LastValue(3, NOW, NOW), policy={"time": NOW, **policy})


@pytest.mark.parametrize(
    ("before", "after", "urgent"),
    [
        ({}, {"heldUntil": NOW + 120.0}, True),
        ({"heldUntil": NOW + 60.0}, {"heldUntil": NOW + 120.0}, True),
        ({"heldUntil": NOW + 120.0}, {"heldUntil": NOW + 120.0}, False),
        ({}, {"heldUntil": NOW - 1.0}, False),
        ({"openSeconds": 5e9}, {"openSeconds": 5.1e9}, False),
        ({"load@1.0": 5e9}, {"load@2.0": 6e9}, False),
    ],
)
def test_only_a_hold_that_begins_or_ends_is_urgent(
    before: dict[str, float], after: dict[str, float], *, urgent: bool
) -> None:
    assert is_urgent(remembered(**before), remembered(**after)) == urgent
