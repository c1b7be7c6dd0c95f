"""A share of the time: work never takes more than the share and one burst, and no pause is longer than allowed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.time.time_share import TimeShare


class Now:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 10)), max_size=50))
def test_work_that_keeps_its_pauses_uses_at_most_its_share_a_burst_and_one_piece(
    pieces: list[tuple[float, float]],
) -> None:
    now = Now()
    share = TimeShare(0.2, 0.5, clock=now)
    spent = 0.0
    for cost, idle in pieces:
        if share.pause_seconds() == 0:
            share.spend(cost)
            spent += cost
        now.seconds += idle
    assert spent <= 0.2 * (now.seconds - 100) + 0.5 + 1 + 1e-6


def test_after_the_pause_time_may_be_spent_again() -> None:
    now = Now()
    share = TimeShare(0.25, 0.5, clock=now)
    share.spend(1.5)
    assert share.pause_seconds() == pytest.approx(4)
    now.seconds += 4.001
    assert share.pause_seconds() == 0


def test_no_pause_is_longer_than_allowed() -> None:
    share = TimeShare(0.05, 0.2, longest_pause_seconds=1.0, clock=Now())
    share.spend(60)
    assert share.pause_seconds() == pytest.approx(1)


def test_time_given_back_is_limited_to_the_burst() -> None:
    share = TimeShare(0.5, 0.5, clock=Now())
    share.spend(-10)
    share.spend(1)
    assert share.pause_seconds() == pytest.approx(1)
