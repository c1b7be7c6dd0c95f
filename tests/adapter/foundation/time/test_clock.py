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
def test_a_moment_is_as_old_as_it_is_whatever_the_wall_clock_was_set_back_to(wall: float, expected: float) -> None:
    heard = Moment(monotonic=50.0, wall=1000.0)
    assert heard.as_of(Moment(monotonic=60.0, wall=wall)) == expected
