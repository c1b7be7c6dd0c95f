"""Whether the next hour of a node is predicted from its own week, and the prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from adapter.foundation.time.pace import UNPACED
from adapter.nodes.model.loads import AVG, LoadResource
from adapter.nodes.model.week import FORECAST_VERDICTS, QUARTER_SECONDS, QUARTERS, QUARTERS_A_DAY, LoadWeek
from adapter.nodes.windows.next_hour_forecast import BETTER_RATIO, HIGHEST_FACTOR, backtest, forecast, upper_quantile
from tests.adapter.nodes.watcher.snapshots import NAN, Measured, snapshot_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.loads import LoadSnapshot

CPU = LoadResource.CPU
END: Final = 1_700_000_100 // QUARTER_SECONDS * QUARTER_SECONDS
TIME: Final = np.arange(QUARTERS)
OF_DAY: Final = TIME % QUARTERS_A_DAY
"""The last quarter of an hour of the week is the last one of its day."""
BY_DAY: Final = np.where(OF_DAY >= 2, 0.7, 0.2)
"""Half an hour after the end of the week the load rises from 20 to 70%, as on every day before."""


def week_of(*rows: Floats) -> LoadWeek:
    names = tuple(f"n{number}" for number in range(len(rows)))
    return LoadWeek(END, names, np.array(rows, dtype=np.float16).reshape(-1, QUARTERS))


def measured(*averages: float) -> LoadSnapshot:
    return snapshot_of({f"n{number}": {CPU: Measured(average)} for number, average in enumerate(averages)})


def predicted(week: LoadWeek, snapshot: LoadSnapshot, after_seconds: float = 30.0) -> list[tuple[str, float | None]]:
    """Return verdict and prediction of each node, so many seconds after the end of the week."""
    found = forecast(snapshot, week, backtest(week, UNPACED), END + after_seconds)
    pairs = zip(found.verdicts.tolist(), found.ratio.tolist(), strict=True)
    return [(FORECAST_VERDICTS[verdict], None if np.isnan(ratio) else round(ratio, 2)) for verdict, ratio in pairs]


def test_a_node_that_gets_busy_at_this_time_each_day_is_predicted_to_be_busy() -> None:
    week = week_of(BY_DAY)
    assert predicted(week, measured(0.2)) == [("predicted", 0.7)]
    # Pods that have come since count in full.
    assert predicted(week, measured(0.35)) == [("predicted", 0.85)]
    # Three hours later it is as busy as it is.
    assert predicted(week, measured(0.7), 3 * 3600.0) == [("predicted", 0.7)]


def test_a_prediction_is_not_below_the_load_of_the_last_five_minutes() -> None:
    snapshot = measured(0.7)
    snapshot.resources[CPU].stats[2, AVG] = 0.85
    assert predicted(week_of(BY_DAY), snapshot, 3 * 3600.0) == [("predicted", 0.85)]


@pytest.mark.parametrize(
    "load",
    [
        pytest.param(lambda _: np.full(QUARTERS, 0.4), id="steady"),
        pytest.param(lambda random: 0.4 + 0.05 * random.standard_normal(QUARTERS), id="noise"),
        pytest.param(lambda random: 0.4 + np.cumsum(0.005 * random.standard_normal(QUARTERS)), id="random walk"),
        pytest.param(
            lambda random: np.concatenate([np.roll(BY_DAY[:QUARTERS_A_DAY], random.integers(96)) for _ in range(7)]),
            id="at another time each day",
        ),
    ],
)
def test_a_load_that_does_not_follow_the_time_of_day_is_not_predicted(
    load: Callable[[np.random.Generator], Floats],
) -> None:
    random = np.random.default_rng(7)
    assert predicted(week_of(np.clip(load(random), 0.0, 1.0)), measured(0.4)) == [("not_better", None)]


@pytest.mark.parametrize(("days", "verdict"), [(0.5, "short_history"), (2, "short_history"), (3.1, "predicted")])
def test_a_prediction_needs_three_days_of_history(days: float, verdict: str) -> None:
    known = np.where(QUARTERS - days * QUARTERS_A_DAY <= TIME, BY_DAY, NAN)
    assert predicted(week_of(known), measured(0.2))[0][0] == verdict


def test_without_a_measured_load_there_is_no_prediction() -> None:
    snapshot = snapshot_of({"n0": {CPU: Measured(0.2, is_estimated=True)}, "n1": {CPU: Measured(NAN)}, "n2": {}})
    assert predicted(week_of(BY_DAY, BY_DAY, BY_DAY), snapshot) == [("no_load", None)] * 3
    assert predicted(week_of(BY_DAY), snapshot_of({"n0": {}})) == [("no_load", None)]


def test_a_node_that_has_joined_since_the_backtest_has_no_history() -> None:
    both = snapshot_of({name: {CPU: Measured(0.2)} for name in ("joined", "n0")})
    assert predicted(week_of(BY_DAY), both) == [("short_history", None), ("predicted", 0.7)]
    assert predicted(LoadWeek(), measured(0.2)) == [("short_history", None)]


def test_a_prediction_is_bounded_by_the_highest_load_seen() -> None:
    low = np.where(OF_DAY >= 2, 0.4, 0.1)
    assert predicted(week_of(low), measured(0.3)) == [("predicted", 0.5)]
    assert predicted(week_of(BY_DAY), measured(0.9)) == [("predicted", 1.0)]


def test_gaps_in_the_history_are_ignored() -> None:
    random = np.random.default_rng(3)
    gaps = np.where(random.random(QUARTERS) < 0.1, NAN, BY_DAY)
    assert predicted(week_of(gaps), measured(0.2))[0] == ("predicted", 0.7)
    # A day on which nothing was measured says nothing.
    silent = np.where((TIME >= 3 * QUARTERS_A_DAY) & (TIME < 4 * QUARTERS_A_DAY), NAN, BY_DAY)
    assert predicted(week_of(silent), measured(0.2))[0] == ("predicted", 0.7)


def test_a_wrong_clock_causes_no_invalid_prediction() -> None:
    for after in (-30 * 86_400.0, -86_400.0, 86_400.0, 30 * 86_400.0):
        verdict, ratio = predicted(week_of(BY_DAY), measured(0.2), after)[0]
        assert verdict == "short_history" or ratio is not None


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.1, 0.2, 0.3], NAN),
        ([0.1, 0.2, NAN, 0.4, 0.3], 0.4),
        (np.arange(1, 20) / 100, 0.18),
        ([NAN, NAN, NAN, NAN], NAN),
    ],
)
def test_the_quantile_is_that_of_the_known_numbers(values: list[float], expected: float) -> None:
    found = upper_quantile(np.array([values], dtype=np.float32))
    assert found[0] == pytest.approx(expected, nan_ok=True)


RATIOS: Final = st.one_of(st.just(NAN), st.floats(0, 1, width=16))


@settings(max_examples=25, deadline=None)
@given(
    day=arrays.arrays(np.float16, QUARTERS_A_DAY, elements=RATIOS),
    noise=arrays.arrays(np.float16, QUARTERS, elements=st.floats(0, 0.0625, width=16)),
    now=st.floats(0, 1),
)
def test_any_prediction_is_a_ratio_within_its_bounds(day: Floats, noise: Floats, now: float) -> None:
    week = week_of(np.clip(np.tile(day, 7) + noise, 0.0, 1.0))
    judged = backtest(week, UNPACED)
    ((verdict, _),) = predicted(week, measured(now))
    found = forecast(measured(now), week, judged, END + 30.0).ratio[0]
    assert (verdict == "predicted") == (not np.isnan(found))
    if verdict == "predicted":
        assert judged.loss_ratio[0] <= BETTER_RATIO
        highest = max(now, float(np.nanmax(week.means)))
        assert now - 1e-6 <= found
        assert found <= max(now, min(1.0, HIGHEST_FACTOR * highest)) + 1e-6
