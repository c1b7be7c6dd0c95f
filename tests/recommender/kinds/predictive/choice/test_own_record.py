"""The record of what has acted is compared with constant headroom of the same mean cost, as in a backtest."""

from __future__ import annotations

import numpy as np
import pytest

from recommender.kinds.predictive.choice.own_record import first_record, sums_of_parts

NO_DOUBT = np.zeros((1, 2))
CHEAP, DEAR = 0.1, 0.3
LOAD = 100.0
"""The replicas that the load needs between two decisions."""
LONG_AGO = 1e12


def shortage(ratio: float) -> float:
    """Return the short steps of headroom between two decisions."""
    return float(np.exp(-10 * ratio))


def sums(ratio: float, short: float | None = None) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return cost, short steps and missing share at the cost of headroom with this ratio."""
    found = shortage(ratio) if short is None else short
    return np.array([[LOAD * (1 + ratio), found, found / 4]])


def excess_after(paid: list[float], gain: float = 1.0) -> float:
    """Return the excess after these costs were paid, if the acting model is short `gain` times as often as headroom."""
    record = first_record(1, paid[0])
    for number, ratio in enumerate(paid, 1):
        mean = float(record.ratio[0])
        slope = 10 * shortage(mean) / LOAD
        saved = np.array([[slope, slope / 4]])
        acted = sums(ratio, gain * shortage(ratio))
        record = record.after(acted, sums(mean), saved, np.array([ratio]), np.array([number]), LONG_AGO)
    return float(record.excess(NO_DOUBT)[0])


def by_backtest(paid: list[float], gain: float = 1.0) -> float:
    """Return the excess by a backtest's comparison, at the mean cost of all decisions."""
    acted = sum(gain * shortage(ratio) for ratio in paid)
    return acted / (len(paid) * shortage(float(np.mean(paid)))) - 1


def test_headroom_of_a_constant_cost_has_no_excess() -> None:
    assert excess_after([CHEAP] * 50) == pytest.approx(0.0)


@pytest.mark.parametrize("gain", [0.5, 1.0])
@pytest.mark.parametrize(
    "paid",
    [
        pytest.param([CHEAP] * 1000 + [DEAR] * 500, id="late and dear"),
        pytest.param([DEAR] * 1000 + [CHEAP] * 500, id="late and cheap"),
        pytest.param([CHEAP, DEAR] * 500, id="to and fro"),
    ],
)
def test_the_excess_equals_that_of_a_backtest_whenever_the_cost_changes(paid: list[float], gain: float) -> None:
    assert excess_after(paid, gain) == pytest.approx(by_backtest(paid, gain), rel=0.02, abs=0.02)


def test_a_changing_cost_has_more_shortages_than_its_constant_mean() -> None:
    assert excess_after([CHEAP] * 1000 + [DEAR] * 1000) > 0.2


def test_the_worse_measure_counts() -> None:
    record = first_record(1, CHEAP).after(
        np.array([[LOAD, 0.0, 3.0]]), np.array([[LOAD, 2.0, 2.0]]), NO_DOUBT, np.array([CHEAP]), np.ones(1), LONG_AGO
    )
    assert record.excess(NO_DOUBT)[0] == pytest.approx(0.5)


def test_few_short_steps_are_little_excess_if_the_doubt_is_large() -> None:
    record = first_record(1, CHEAP).after(
        np.array([[LOAD, 2.0, 0.0]]), np.array([[LOAD, 1.0, 0.0]]), NO_DOUBT, np.array([CHEAP]), np.ones(1), LONG_AGO
    )
    assert record.excess(NO_DOUBT)[0] == pytest.approx(1.0)
    assert record.excess(np.full((1, 2), 99.0))[0] == pytest.approx(0.01)


def test_old_shortages_are_forgotten() -> None:
    record = first_record(1, CHEAP).after(sums(CHEAP, 9.0), sums(CHEAP), NO_DOUBT, np.array([CHEAP]), np.ones(1), 100.0)
    early = record.excess(NO_DOUBT)[0]
    for _ in range(1000):
        record = record.after(sums(CHEAP), sums(CHEAP), NO_DOUBT, np.array([CHEAP]), np.full(1, 100.0), 100.0)
    assert early > 1
    assert record.excess(NO_DOUBT)[0] < 0.01


def test_resetting_one_series_keeps_the_records_of_others() -> None:
    record = first_record(2, CHEAP).after(
        np.repeat(sums(CHEAP, 9.0), 2, axis=0),
        np.repeat(sums(CHEAP), 2, axis=0),
        np.zeros((2, 2)),
        np.full(2, CHEAP),
        np.ones(2),
        LONG_AGO,
    )
    found = record.begin(np.array([True, False]), np.array([DEAR, DEAR]))
    assert found.ratio.tolist() == [DEAR, CHEAP]
    assert found.short[:, 0].tolist() == [0.0, 9.0]


def test_growth_of_odds_is_counted_from_the_moment_at_which_the_record_is_worse() -> None:
    both, grown = np.array([False, True]), np.array([3.0, 3.0])
    record = first_record(2, CHEAP).proven(grown).count_odds_anew(both)
    assert record.regained.tolist() == [0.0, 1.0]
    record = record.proven(grown).count_odds_anew(both).proven(grown)
    assert record.regained.tolist() == [0.0, 9.0]
    assert record.count_odds_anew(np.zeros(2, dtype=bool)).regained.tolist() == [0.0, 0.0]
    assert record.begin(both, np.full(2, CHEAP)).regained.tolist() == [0.0, 0.0]


def test_lost_odds_have_to_be_regained_however_low_they_fell() -> None:
    record = first_record(1, CHEAP).count_odds_anew(np.ones(1, dtype=bool))
    for _ in range(10):
        record = record.proven(np.full(1, 1e-300)).count_odds_anew(np.ones(1, dtype=bool))
    assert 0 < record.proven(np.full(1, 5.0)).regained[0] < 1


def test_a_record_resumes_from_its_stored_figures() -> None:
    record = first_record(1, DEAR).after(sums(DEAR, 9.0), sums(DEAR), NO_DOUBT, np.array([DEAR]), np.ones(1), LONG_AGO)
    record = record.count_odds_anew(np.ones(1, dtype=bool)).proven(np.full(1, 2.5))
    resumed = first_record(2, CHEAP)
    resumed.resume(1, record.figures(0))
    np.testing.assert_array_equal(resumed.figures(1), record.figures(0))
    np.testing.assert_array_equal(resumed.figures(0), first_record(1, CHEAP).figures(0))


def test_a_mixture_has_the_weighted_mean_of_its_parts() -> None:
    parts = np.array([[[10.0, 4.0, 2.0], [30.0, 0.0, 0.0]]])
    weights = np.array([[0.25, 0.25, 0.5]])
    assert sums_of_parts(parts, weights, np.array([[20.0, 2.0, 1.0]])).tolist() == [[20.0, 2.0, 1.0]]
