"""Turns samples at any times into load on a regular grid.

The grid of the median step is centred on the samples' times, so that small irregularities leave no holes. A coarser
step covers [k * step, (k + 1) * step) of Unix time; its value is the mean of the finer steps in it, and is known when
the step is over. Nothing is interpolated: a step without a sample is unknown, or 0 if a missing sample means no load.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.backtest.errors import BacktestError
from recommender.kinds.predictive.history import LoadHistory, of_one_series

if TYPE_CHECKING:
    from recommender.backtest.recorded.trace_file import RecordedLoad
    from recommender.kinds.predictive.arrays import FloatArray, IntArray

MOST_STEPS: Final = 1_000_000
_MOST_FINE_STEPS: Final = 20_000_000
_ONE_ROW_STEP_SECONDS: Final = 60.0
_ALMOST: Final = 1e-6


class Missing(StrEnum):
    """The treatment of a step without a sample."""

    GAP = "gap"
    """The load is unknown, and the step is not judged."""
    ZERO = "zero"
    """There was no load."""


def resample(trace: RecordedLoad, step_seconds: float | None, missing: Missing) -> LoadHistory:
    """Return the load on a grid of this step; None means the median step of the samples.

    Raises BacktestError if the step is finer than the median step, if there are too many steps, or if no value is
    known.
    """
    if np.isnan(trace.values).all():
        raise BacktestError(f"{trace.source}: no sample has a value: record some load first")
    fine = median_step(trace) or step_seconds or _ONE_ROW_STEP_SECONDS
    step = fine if step_seconds is None else step_seconds
    if step < fine * (1 - _ALMOST):
        raise BacktestError(
            f"{trace.source}: a step of {step:g} s is finer than the samples, whose median step is {fine:g} s: "
            f"write --step={fine:g}s or more"
        )
    steps = (trace.times[-1] - trace.times[0]) / step + 1
    if steps > MOST_STEPS:
        coarser = 60 * np.ceil((trace.times[-1] - trace.times[0]) / MOST_STEPS / 60)
        raise BacktestError(
            f"{trace.source}: {steps:,.0f} steps of {step:g} s are more than {MOST_STEPS:,}: "
            f"write --step={coarser:g}s, unless a time in it is wrong"
        )
    grid = _fine_grid(trace, fine, missing)
    if step > fine * (1 + _ALMOST):
        grid = _coarse(grid, step)
    return _without_unknown_ends(grid)


def _without_unknown_ends(history: LoadHistory) -> LoadHistory:
    """Return the steps from the first known one to the last.

    Otherwise all known steps could lie in the warm-up, so that nothing is judged, and models would seem to have had a
    history.
    """
    known = np.flatnonzero(~np.isnan(history.values[0]))
    if not len(known):
        return history
    first = int(known[0])
    start = history.start_seconds + first * history.step_seconds
    return LoadHistory(start, history.step_seconds, history.values[:, first : known[-1] + 1])


def median_step(trace: RecordedLoad) -> float | None:
    """Return the median distance between neighbouring samples in seconds; None for a single sample."""
    if len(trace.times) < 2:
        return None
    # The lower of the two middle values is used: a step that occurs, not one between two that occur.
    return float(np.quantile(np.diff(trace.times), 0.5, method="lower"))


def _fine_grid(trace: RecordedLoad, step: float, missing: Missing) -> LoadHistory:
    places = np.floor((trace.times - trace.times[0]) / step + 0.5)
    count = float(places[-1]) + 1
    if count > _MOST_FINE_STEPS:
        raise BacktestError(
            f"{trace.source}: the samples span {count:,.0f} of their median steps of {step:g} s, more than "
            f"{_MOST_FINE_STEPS:,}: check the first and the last time, or cut the trace"
        )
    places = places.astype(np.int64)
    values = _means(places, trace.values, int(count))
    if missing is Missing.ZERO:
        # A sample whose value is unknown does not say that there was no load.
        sampled = places if trace.is_sample is None else places[trace.is_sample]
        values[np.bincount(sampled, minlength=int(count)) == 0] = 0.0
    return of_one_series(float(trace.times[0]), step, values)


def _coarse(fine: LoadHistory, step: float) -> LoadHistory:
    """Return the means over the steps of a coarser grid, without the last step if it is not over."""
    times = fine.times()
    numbers = np.floor(times / step + _ALMOST).astype(np.int64)
    first, last = int(numbers[0]), int(numbers[-1])
    is_over = times[-1] + fine.step_seconds >= (last + 1) * step - _ALMOST * step
    count = last - first + (1 if is_over or last == first else 0)
    return of_one_series(first * step, step, _means(numbers - first, fine.values[0], last - first + 1)[:count])


def _means(places: IntArray, values: FloatArray, count: int) -> FloatArray:
    """Return the mean of the known values at each place; NaN where no value is known."""
    known = ~np.isnan(values)
    counts = np.bincount(places[known], minlength=count).astype(np.float64)
    totals = np.bincount(places[known], weights=values[known], minlength=count)
    return np.asarray(np.divide(totals, counts, out=np.full(count, np.nan), where=counts > 0))
