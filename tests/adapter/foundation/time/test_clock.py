"""A moment is read back after somebody has set the wall clock."""

from __future__ import annotations

import pytest

from adapter.foundation.time.clock import Moment

HOUR = 3600.0


@pytest.mark.parametrize(
    ("wall", "expected"),
    [
        (1010.0, 1000.0),
        (1009.5, 1000.0),
        (1010.5, 1000.0),
        (1010.0 - HOUR, 1000.0 - HOUR),
        (1010.0 - 5.0, 995.0),
        (1010.0 + HOUR, 1000.0),
    ],
    ids=["not set", "slewed back", "slewed forward", "set back", "set back by less than the age", "set forward"],
)
def test_setting_the_wall_clock_back_does_not_change_the_age_of_a_moment(wall: float, expected: float) -> None:
    moment = Moment(monotonic=50.0, wall=1000.0)
    assert moment.as_of(Moment(monotonic=60.0, wall=wall)) == expected
