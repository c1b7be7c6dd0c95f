"""Least squares: a line or a parabola through recent samples, followed to the horizon.

Sources: the line is PHPA's `Linear`, but of the load instead of replicas. The parabola is that of autoscalers for
websockets, which fit it to five samples and evaluate it at now + start-up time. A parabola through five noisy samples
can have any value twelve steps ahead, so here it is fitted to samples of a longer time, and the forecast is limited to
a multiple of the current load.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from recommender.kinds.predictive.calibration import calibrate
from recommender.kinds.predictive.forecast import Model, no_fit
from recommender.kinds.predictive.models.load_at_origin import current_load, limit_growth, limited_points, trend_growth

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray, IntArray
    from recommender.kinds.predictive.forecast import Forecasts, ForecastTask
    from recommender.kinds.predictive.history import LoadHistory

BLOCK_ROWS = 100_000
"""Number of rows of samples that are processed at once if some samples are unknown."""


@dataclass(frozen=True, slots=True)
class CurveOptions:
    """The curve, and the samples that it is fitted to."""

    degree: int
    horizons: float
    """How far the samples reach back, as a multiple of how far the forecast reaches ahead. The smaller it is, the more
    the forecast amplifies noise."""
    least_samples: int
    """The least number of samples; if steps are coarse, samples from further back are used to reach it. With fewer
    samples, there is no forecast."""

    def sample_steps(self, task: ForecastTask, step_seconds: float) -> int:
        """Return how many steps the samples cover."""
        ahead_steps = task.lead_steps(step_seconds) + task.window_steps(step_seconds) - 1
        return max(self.least_samples, int(np.ceil(self.horizons * ahead_steps)))


LINE = CurveOptions(degree=1, horizons=2.0, least_samples=5)
PARABOLA = CurveOptions(degree=2, horizons=4.0, least_samples=8)


def _forecast(
    options: CurveOptions, _parameters: None, history: LoadHistory, origins: IntArray, task: ForecastTask
) -> Forecasts:
    """Return the largest value of the curve in the window of the target.

    The growth limit also bounds the upper forecasts: a curve through noise has such large errors that the room for them
    would be several times the load.
    """
    growth = trend_growth(task)

    def point(steps: IntArray) -> FloatArray:
        # Falling to zero is as unfounded as growing without bounds, and no error can be relative to zero.
        lowest = current_load(history, steps) / growth
        points = np.maximum(_largest(history, steps, task, options), lowest)
        return limited_points(points, history, steps, growth, task.lead_seconds)

    return limit_growth(calibrate(point, history, origins, task), history, origins, growth, task.lead_seconds)


def curves_at(times: FloatArray, values: FloatArray, degree: int, at: FloatArray) -> FloatArray:
    """Return least-squares polynomials through samples, evaluated at other times; shape (..., len(at)).

    `values` has the shape (..., len(times)). NaN where a sample is unknown.
    """
    scale = max(1.0, float(np.abs(times).max(initial=0.0)))
    reach = np.linalg.pinv(_powers(times / scale, degree))
    found: FloatArray = values @ (_powers(at / scale, degree) @ reach).T
    return found


def curves_of_known(times: FloatArray, values: FloatArray, degree: int, at: FloatArray) -> FloatArray:
    """Return what `curves_at` does, for rows with unknown samples, from normal equations over the known samples.

    Each row needs more known samples than the degree.
    """
    scale = max(1.0, float(np.abs(times).max(initial=0.0)))
    basis = _powers(times / scale, degree)
    known = ~np.isnan(values)
    left = np.tensordot(known.astype(np.float64), basis[:, :, np.newaxis] * basis[:, np.newaxis, :], axes=(1, 0))
    right = np.where(known, values, 0.0) @ basis
    found: FloatArray = np.linalg.solve(left, right[..., np.newaxis])[..., 0] @ _powers(at / scale, degree).T
    return found


def _powers(times: FloatArray, degree: int) -> FloatArray:
    powers: FloatArray = np.vander(times, degree + 1, increasing=True)
    return powers


def _largest(history: LoadHistory, origins: IntArray, task: ForecastTask, options: CurveOptions) -> FloatArray:
    steps = options.sample_steps(task, history.step_seconds)
    lead, window = task.lead_steps(history.step_seconds), task.window_steps(history.step_seconds)
    # A line is largest at one end of the window; a parabola may be so within it.
    ahead = np.array([lead, lead + window - 1]) if options.degree == 1 else np.arange(lead, lead + window)
    times, at = np.arange(1.0 - steps, 1.0), ahead.astype(np.float64)
    samples = _samples(history.values, origins, steps)
    found: FloatArray = curves_at(times, samples, options.degree, at).max(axis=2)
    rows, columns = np.nonzero(np.isnan(found) & ~np.isnan(samples[:, :, -1]))
    for first in range(0, len(rows), BLOCK_ROWS):
        row, column = rows[first : first + BLOCK_ROWS], columns[first : first + BLOCK_ROWS]
        partly = samples[row, column]
        count = (~np.isnan(partly)).sum(axis=1)
        # At the beginning of a history there are fewer; later at least half of them must be known.
        enough = (count >= options.least_samples) & (2 * count >= np.minimum(origins[column] + 1, steps))
        known = curves_of_known(times, partly[enough], options.degree, at).max(axis=1)
        found[row[enough], column[enough]] = known
    return found


def _samples(values: FloatArray, origins: IntArray, steps: int) -> FloatArray:
    """Return the samples up to each origin, shape (series, origins, steps); NaN before the history.

    The answer is a view if the origins are evenly spaced.
    """
    first, last = int(origins.min()) - steps + 1, int(origins.max())
    needed = values[:, max(first, 0) : last + 1]
    if first < 0:
        needed = np.pad(needed, ((0, 0), (-first, 0)), constant_values=np.nan)
    places = origins - origins.min()
    distances = np.unique(np.diff(places))
    windows = sliding_window_view(needed, steps, axis=1)
    if len(places) == 1:
        return windows[:, :1]
    if len(distances) == 1 and distances[0] > 0:
        return windows[:, :: int(distances[0])]
    return windows[:, places]


LINEAR = Model("linear", 0.0, no_fit, partial(_forecast, LINE))
POLYNOMIAL = Model("polynomial", 0.0, no_fit, partial(_forecast, PARABOLA))
