"""The part of the past that is queried, and when; what of it a restart keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
import pytest

from adapter.foundation.time.clock import Clock
from adapter.nodes.model.day import SLOT_SECONDS
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.samples import SampleSet
from adapter.nodes.queries.refresh_results import RefreshResult
from adapter.nodes.snapshot.day_and_week_keeper import PastKeeper
from adapter.nodes.snapshot.day_keeper import DayKeeper
from adapter.nodes.snapshot.machine_identity import Machines
from adapter.nodes.state_file.state_file import SAMPLES, StateFile
from adapter.nodes.windows.grid import kept_columns
from tests.support.sample_grids import STEP, grid_of

if TYPE_CHECKING:
    from pathlib import Path

    from adapter.nodes.queries.refresher import SampleRefresher
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


def test_a_restart_keeps_the_day_of_its_file(tmp_path: Path) -> None:
    end = 1_700_000_100 // SLOT_SECONDS * SLOT_SECONDS

    def started() -> DayKeeper:
        clock = Clock(monotonic=lambda: 0.0, wall=lambda: end + 75.0)
        found = DayKeeper(StateFile(tmp_path / "state.day", "m", SAMPLES, clock), clock.wall)
        found.read_file()
        return found

    keeper = started()
    samples = grid_of(np.full((1, kept_columns(STEP)), 0.25), nodes=("a",), end=end + 75, newest=end + 75)
    keeper.add_refresh(RefreshResult(SampleSet({LoadResource.CPU: samples})), Machines())
    keeper.write_file()
    day = started().day
    assert (day.nodes, day.end) == (("a",), end)
    np.testing.assert_array_equal(day.means[LoadResource.CPU], keeper.day.means[LoadResource.CPU])
    assert day.means[LoadResource.CPU][0, -1] == 0.25
