"""Whether a list without any object is believed."""

from __future__ import annotations

import pytest

from recommender.kinds.proportional.empty_lists import EmptyLists


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
    state = EmptyLists()
    answers = []
    for now, objects in lists:
        answers.append(state.believes(objects, now))
        state = state.after(objects, now)
    assert answers[-1] is believed
