"""Judges the times that the samples of an answer state, which decide how old its values are.

Prometheus states the time for which the query was evaluated. A cache in front of it may return an answer for an earlier
time, and a server that ignores the query's time may return one for any other time: such values must not count as those
of the requested time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapter.metrics.readings.samples.object_reading import Evaluation


class SampleTimes:
    """The times of the samples of one answer. Not thread-safe."""

    def __init__(self, evaluated: Evaluation, most_seconds: float) -> None:
        """Judge by the requested time; a sample that is more than `most_seconds` off is of another time."""
        self._evaluated = evaluated
        self._oldest, self._newest = evaluated.wall - most_seconds, evaluated.wall + most_seconds
        self._earliest = evaluated.wall

    def admits(self, timestamp: float) -> bool:
        """Return whether a sample's time (Unix seconds) is close to the requested time, and record it if so."""
        if self._oldest <= timestamp <= self._newest:
            self._earliest = min(self._earliest, timestamp)
            return True
        return False

    def evaluation(self) -> Evaluation:
        """Return the time of the values, from which their age counts: the earliest of all recorded times."""
        return self._evaluated.earlier(self._evaluated.wall - self._earliest)
