"""The step of the grid on which the history of load is kept."""

from __future__ import annotations

MOST_POINTS_PER_SERIES = 20_160
"""Two weeks at one minute: beyond a few thousand points a model learns nothing more, and memory counts."""
MOST_POINTS = 42_000_000
"""Of all series of a recommendation: 160 MiB as 32-bit numbers. 10,000 series keep two weeks at five minutes."""
STEPS_SECONDS = (1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0)


def grid_step_seconds(history_seconds: float, poll_interval_seconds: float, series: int) -> float:
    """Return the finest step that is not below the poll interval and keeps the history within the limits.

    With the default history of 14 days that is one minute, and five minutes for 10,000 series; a short history, as in
    a demonstration, is kept at the interval of the polls.
    """
    for step in STEPS_SECONDS:
        points = history_seconds / step
        fits = points <= MOST_POINTS_PER_SERIES and points * max(series, 1) <= MOST_POINTS
        if fits and step >= poll_interval_seconds:
            return step
    return max(STEPS_SECONDS[-1], poll_interval_seconds)
