from __future__ import annotations

import pytest

from adapter.foundation.time.backoff import Backoff, backoff_seconds


@pytest.mark.parametrize(("failures", "seconds"), [(1, 0.5), (2, 1), (5, 8), (7, 30), (10_000, 30)])
def test_the_wait_doubles_up_to_a_limit(failures: int, seconds: float) -> None:
    assert backoff_seconds(failures, first_seconds=0.5, longest_seconds=30) == seconds


@pytest.mark.parametrize(("ratio", "least"), [(1.0, 0.0), (0.5, 2.0), (0.0, 4.0)])
def test_jitter_is_drawn_from_the_upper_part_of_the_wait(ratio: float, least: float) -> None:
    drawn: list[tuple[float, float]] = []

    def uniform(low: float, high: float) -> float:
        drawn.append((low, high))
        return low

    backoff = Backoff(4.0, 60.0, jitter_ratio=ratio, uniform=uniform)
    assert backoff.delay(at_least=1.0) == 1.0 + least
    assert drawn == [(least, 4.0)]


def test_a_reset_starts_with_the_first_delay() -> None:
    backoff = Backoff(1.0, 60.0, uniform=lambda _low, high: high)
    assert [backoff.delay(), backoff.delay(), backoff.delay()] == [1.0, 2.0, 4.0]
    backoff.reset()
    assert (backoff.failures, backoff.delay()) == (0, 1.0)
