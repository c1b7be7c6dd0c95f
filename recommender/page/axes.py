"""The axes that the charts of a recommendation share: a day from left to right, a value from the bottom to the top."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from recommender.plots.limits import cut_off_text

WIDTH: Final = 640
HEIGHT: Final = 140
LEFT: Final = 44
"""Room for the labels of the value axis."""
BOTTOM: Final = 22
"""Room for the labels of the time axis."""
TOP: Final = 8
RIGHT: Final = 8
SHORTEST_SPAN_SECONDS: Final = 600.0
LARGEST_GAP_SECONDS: Final = 150.0
"""Points further apart than this are not joined: nothing is known about the time between them. A value that stays the
same is noted once a minute."""
OUTLIER_RATIO: Final = 10.0
"""A peak up to this many times the usual maximum is drawn in full, since the rest is still readable beside it."""
_MARK_GAP: Final = 6
"""The gap between the line of an outlier and its mark."""
_STEPS: Final = (1, 2, 3, 4, 5, 6, 8, 10)
_UNITS: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True, slots=True)
class Label:
    """A text at an axis."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Span:
    """The time that a chart shows, in Unix seconds."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        """The length of the span."""
        return self.end - self.start


def span_of(first: float, *others: float) -> Span:
    """Return the span from the first time to the latest of the others, extended if it is too short to be drawn."""
    end = max(others)
    return Span(min(first, end - SHORTEST_SPAN_SECONDS), end)


@dataclass(frozen=True, slots=True)
class Scale:
    """Converts times and values to SVG's user units."""

    span: Span
    most: float
    """The value at the top."""

    def x(self, time: float) -> float:
        """Return the x coordinate of a time."""
        return round(LEFT + (time - self.span.start) / self.span.seconds * (WIDTH - LEFT - RIGHT), 1)

    def y(self, value: float) -> float:
        """Return the y coordinate of a value; a value beyond the axis is drawn at the end of the axis."""
        return round(TOP + (1 - min(value, self.most) / self.most) * (HEIGHT - TOP - BOTTOM), 1)

    def value_labels(self) -> tuple[Label, ...]:
        """Return the labels of the value axis, at the left."""
        middle = self.most / 2
        values = (0.0, float(math.floor(middle)) if middle >= 1 else middle, self.most)
        return tuple(Label(LEFT - 6, self.y(value) + 4, format_tick(value)) for value in values)

    def cut_off(self, values: Sequence[tuple[float, float]]) -> Label | None:
        """Return the mark of the largest value of these (time, value) pairs if it exceeds the axis; otherwise None."""
        time, value = max(values, key=lambda each: each[1])
        if value <= self.most:
            return None
        place = self.x(time)
        # The mark is beside the line, on the side that has room.
        return Label(place + (_MARK_GAP if place < WIDTH / 2 else -_MARK_GAP), TOP + 12, cut_off_text(value))

    def time_labels(self) -> tuple[Label, ...]:
        """Return the labels of the time axis, at the bottom: start, middle, end."""
        times = [self.span.start + share * self.span.seconds for share in (0.0, 0.5, 1.0)]
        return tuple(
            Label(self.x(time), HEIGHT - 6, datetime.fromtimestamp(time, UTC).strftime("%H:%M")) for time in times
        )


def rounded_up(value: float, least: float) -> float:
    """Return the next number that is 1, 2, 3, 4, 5, 6 or 8 times a power of ten; at least `least`."""
    if value <= least:
        return least
    magnitude = 10.0 ** math.floor(math.log10(value))
    return next((step * magnitude for step in _STEPS if value <= step * magnitude), 10 * magnitude)


def period_text(seconds: float) -> str:
    """Return a length of time in words: `5 hours`, `20 minutes`."""
    hours = seconds / 3600
    return f"{hours:.0f} hours" if hours >= 2 else f"{seconds / 60:.0f} minutes"


def format_tick(value: float) -> str:
    """Return a number that fits beside an axis, such as `2.5k`."""
    for size, unit in _UNITS:
        if value >= size:
            return f"{value / size:.4g}{unit}"
    return f"{value:.4g}"
