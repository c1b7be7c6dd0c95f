from __future__ import annotations

import pytest

from benchmarks.tally import Tally, quantile


@pytest.mark.parametrize(
    ("count", "share", "value"), [(1, 0.5, 1), (2, 0.5, 1), (100, 0.5, 50), (100, 0.99, 99), (101, 0.99, 100)]
)
def test_a_quantile_is_one_of_the_values(count: int, share: float, value: int) -> None:
    assert quantile(list(range(1, count + 1)), share) == value


def test_nothing_has_no_quantile() -> None:
    assert quantile([], 0.5) is None


def test_errors_lower_the_share_and_leave_the_latencies_alone() -> None:
    tally = Tally(start_at=0.0, measure_from=10.0)
    for second in range(10, 14):
        tally.answered(float(second), 0.004, age=2.0)
    tally.failed(14.0, "status 429")
    outcome = tally.outcome(seconds=5.0)
    assert (outcome.requests, outcome.good, outcome.errors) == (5, 4, 1)
    assert (outcome.p50_ms, outcome.max_ms, outcome.rate_per_second) == (4.0, 4.0, 0.8)
    assert outcome.reasons == {"status 429": 1}


def test_the_warm_up_is_counted_apart() -> None:
    tally = Tally(start_at=5.0, measure_from=10.0)
    tally.failed(7.5, "status 504")
    tally.answered(9.9, 3.0, age=50.0)
    tally.noticed(9.9, 9.95)
    outcome = tally.outcome(seconds=5.0)
    assert (outcome.requests, outcome.errors, outcome.warm_up_errors) == (0, 0, 1)
    assert outcome.cold_start_seconds == 2.5
    assert outcome.max_ms is None
    assert outcome.client_delay_p99_ms is None
    assert outcome.answer_age_max_seconds is None


def test_only_a_few_reasons_are_kept_and_those_are_counted() -> None:
    tally = Tally(start_at=0.0, measure_from=0.0)
    for number in range(100):
        tally.failed(1.0, f"reason {number % 50}")
    outcome = tally.outcome(seconds=1.0)
    assert outcome.errors == 100
    assert outcome.reasons == {f"reason {number}": 2 for number in range(20)}
