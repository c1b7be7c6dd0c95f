from __future__ import annotations

import pytest

from adapter.readiness.limit import connection_limit


@pytest.mark.parametrize(
    ("connections", "was_full", "is_full"),
    [
        (0, False, False),
        (24_999, False, False),
        (24_999.5, False, False),
        (25_000, False, True),
        (40_000, False, True),
        (25_000, True, True),
        (24_999, True, True),
        (23_750, True, True),
        (23_749, True, False),
        (0, True, False),
        (23_750, False, False),
    ],
)
def test_a_pod_is_full_at_the_limit_and_has_room_again_below_the_ratio(
    connections: float, *, was_full: bool, is_full: bool
) -> None:
    assert connection_limit(25_000, 0.95).is_full(connections, was_full=was_full) is is_full


@pytest.mark.parametrize(
    ("limit", "ratio", "below"), [(25_000, 0.95, 23_750), (100, 0.07, 7), (10, 0.95, 9.5), (1, 1.0, 1), (3, 1 / 3, 1)]
)
def test_the_ratio_is_exact_for_whole_numbers(limit: int, ratio: float, below: float) -> None:
    assert connection_limit(limit, ratio).resume_below == below


@pytest.mark.parametrize(("limit", "ratio"), [(0, 0.95), (-5, 0.95), (10, 0.0), (10, -0.5), (10, 1.01)])
def test_a_limit_or_ratio_out_of_range_is_refused(limit: int, ratio: float) -> None:
    with pytest.raises(ValueError, match="write"):
        connection_limit(limit, ratio)
