"""The times for which past loads are kept: multiples of one step (pure).

A sample of time T is the value of the query evaluated at T, whether it comes from a range query or from a poll. Samples
thus mean the same whatever their source, and a grid whose step is a multiple of another grid's step contains a regular
part of the samples of that grid.
"""

from __future__ import annotations

import math

STEPS_SECONDS = (1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0)
FEW_SERIES = 200
MOST_SAMPLES_OF_FEW = 20_160
"""The largest number of samples of each series if there are few series: two weeks at 60 s."""
MOST_SAMPLES_OF_MANY = 4_032
"""The largest number of samples of each series if there are many: two weeks at 300 s, or 154 MiB for 10,000 series."""


def step_of(history_seconds: float, poll_interval_seconds: float, series: int) -> float:
    """Return the step in seconds: fine enough for a short history, and coarse enough for the memory of a long one.

    Two weeks are kept at 60 s, and at 300 s with more than 200 series. A step is never shorter than the poll interval.
    """
    most = MOST_SAMPLES_OF_FEW if series <= FEW_SERIES else MOST_SAMPLES_OF_MANY
    least = max(history_seconds / most, poll_interval_seconds)
    return next((step for step in STEPS_SECONDS if step >= least - 1e-9), math.ceil(least / 3600.0) * 3600.0)


def steps_of(history_seconds: float, step_seconds: float) -> int:
    """Return how many samples of a series are kept."""
    return max(2, math.ceil(history_seconds / step_seconds - 1e-9))


def index_at(seconds: float, step_seconds: float) -> int:
    """Return the number of the last grid time that is not after a time in Unix seconds."""
    return math.floor(seconds / step_seconds + 1e-9)


def nearest_index(seconds: float, step_seconds: float) -> int:
    """Return the number of the grid time that is nearest to a time in Unix seconds."""
    return math.floor(seconds / step_seconds + 0.5)
