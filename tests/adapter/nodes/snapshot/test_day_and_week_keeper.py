"""The part of the past that is queried, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from adapter.nodes.model.samples import SampleSet
from adapter.nodes.queries.refresh_results import RefreshResult
from adapter.nodes.snapshot.day_and_week_keeper import PastKeeper
from adapter.nodes.snapshot.machine_identity import Machines

if TYPE_CHECKING:
    from adapter.nodes.queries.refresher import SampleRefresher
    from adapter.nodes.snapshot.day_keeper import DayKeeper
    from adapter.nodes.snapshot.week_keeper import WeekKeeper


class Part:
    """The day or the week, of which so many queries are missing."""

    day = None

    def __init__(self, name: str, lacks: int, queried: list[str]) -> None:
        self.name, self.lacks, self.queried = name, lacks, queried

    def add_refresh(self, *_of: object) -> None:
        return

    def judge(self) -> None:
        return

    def fill(self, *_of: object, is_needed: bool = False) -> int:
        assert is_needed == (self.name == "week")
        if not self.lacks:
            return 0
        self.lacks -= 1
        self.queried.append(self.name)
        return 1


def queried_parts(day: int, week: int, refresh_seconds: float, refreshes: int) -> list[str]:
    """Return what is queried while each refresh sends as many queries as it may."""
    queried: list[str] = []
    parts = (Part("day", day, queried), Part("week", week, queried))
    keeper = PastKeeper(cast("DayKeeper", parts[0]), cast("WeekKeeper", parts[1]), refresh_seconds)
    allowed = max(1, int(12 * refresh_seconds / 60))
    for _ in range(refreshes):
        result = RefreshResult(SampleSet({}), queries=allowed - keeper.kept_queries)
        keeper.add_refresh(result, Machines())
        keeper.fill(cast("SampleRefresher", None), result, Machines(), needs_week=True)
    return queried


@pytest.mark.parametrize(
    ("day", "week", "expected"),
    [
        (2, 2, ["day", "week", "day", "week"]),
        (1, 3, ["day", "week", "week", "week"]),
        (4, 0, ["day", "day", "day", "day"]),
        (0, 0, []),
    ],
)
def test_day_and_week_take_turns_with_the_remaining_queries(day: int, week: int, expected: list[str]) -> None:
    # One of ten refreshes leaves a query.
    assert queried_parts(day, week, refresh_seconds=5.0, refreshes=40) == expected
    assert queried_parts(day, week, refresh_seconds=30.0, refreshes=40) == expected
