"""Whether a list without any object is believed."""

from __future__ import annotations

from contextlib import nullcontext, suppress

import pytest

from recommender.commands.vertical.cluster_sizes import ConfirmedCounts
from recommender.commands.vertical.polls import PollError


@pytest.mark.parametrize(
    ("lists", "believed"),
    [
        ([(0.0, 5)], True),
        ([(0.0, 0)], False),
        ([(0.0, 5), (10.0, 0), (20.0, 0)], False),
        ([(0.0, 0), (29.9, 0)], False),
        ([(0.0, 0), (10.0, 0), (30.0, 0)], True),
        ([(0.0, 0), (20.0, 3), (30.0, 0)], False),
        ([(0.0, 0), (30.0, 0), (40.0, 0)], True),
    ],
)
def test_an_empty_list_is_believed_after_half_a_minute(lists: list[tuple[float, int]], *, believed: bool) -> None:
    moments = iter(now for now, _ in lists)
    counts = ConfirmedCounts("empty_cluster", lambda: next(moments))
    for _, objects in lists[:-1]:
        with suppress(PollError):
            counts.check(objects)
    with nullcontext() if believed else pytest.raises(PollError, match="the cluster looks empty"):
        counts.check(lists[-1][1])
