"""The chart of a recommendation's last day: recommended and current replicas as step lines, drawn on the server as SVG.

Everything here is arithmetic on plain data; the template prints the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH = 640
HEIGHT = 140
LEFT = 44
"""Room for the labels of the value axis."""
BOTTOM = 22
"""Room for the labels of the time axis."""
TOP = 8
RIGHT = 8
SHORTEST_SPAN_SECONDS = 600.0
LARGEST_GAP_SECONDS = 150.0
"""Points further apart than this are not joined: nothing is known of the time between them. A value that stays the same
is noted once a minute."""


class ChartPoint(Protocol):
    """One decision of the past."""

    @property
    def time(self) -> float:
        """When it was made, in seconds since the Unix epoch."""
        ...

    @property
    def replicas(self) -> int | None:
        """What was recommended; None if there was no value."""
        ...

    @property
    def current(self) -> int | None:
        """What the target had; None if it was not known."""
        ...


@dataclass(frozen=True, slots=True)
class Label:
    """A text at an axis."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Everything that the template prints; coordinates in SVG's user units."""

    recommended: str
    """Path data of the line."""
    current: str
    value_labels: tuple[Label, ...]
    time_labels: tuple[Label, ...]
    summary: str
    """The chart in one sentence, for people who do not see it."""


def chart_of(points: Sequence[ChartPoint]) -> Chart | None:
    """Return the chart of these points, which are in ascending order of time; None if there is no value to draw."""
    values = [value for point in points for value in (point.replicas, point.current) if value is not None]
    if not values:
        return None
    start, end = points[0].time, points[-1].time
    span = max(end - start, SHORTEST_SPAN_SECONDS)
    scale = _Scale(end - span, end, _rounded_up(max(values)))
    return Chart(
        recommended=_path([(point.time, point.replicas) for point in points], scale),
        current=_path([(point.time, point.current) for point in points], scale),
        value_labels=_value_labels(scale),
        time_labels=_time_labels(scale),
        summary=_summary(points, span),
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    start: float
    end: float
    most: int

    def x(self, time: float) -> float:
        return round(LEFT + (time - self.start) / (self.end - self.start) * (WIDTH - LEFT - RIGHT), 1)

    def y(self, value: float) -> float:
        return round(TOP + (1 - value / self.most) * (HEIGHT - TOP - BOTTOM), 1)


def _rounded_up(value: int) -> int:
    """Return the next number of the form 1, 2 or 5 times a power of ten; at least 1."""
    magnitude = 1
    while True:
        for step in (1, 2, 5):
            if value <= step * magnitude:
                return step * magnitude
        magnitude *= 10


def _path(values: Sequence[tuple[float, int | None]], scale: _Scale) -> str:
    """Return a step line: a value holds until the next point. Gaps and missing values interrupt it."""
    parts: list[str] = []
    last: float | None = None
    for time, value in values:
        if value is None:
            last = None
            continue
        x, y = scale.x(time), scale.y(value)
        joined = last is not None and time - last <= LARGEST_GAP_SECONDS
        # The dot of a single point is a line of no length, which round caps make visible.
        parts.append(f"H{x}V{y}" if joined else f"M{x} {y}h0")
        last = time
    return "".join(parts)


def _value_labels(scale: _Scale) -> tuple[Label, ...]:
    values = sorted({0, scale.most // 2, scale.most})
    return tuple(Label(LEFT - 6, scale.y(value) + 4, str(value)) for value in values)


def _time_labels(scale: _Scale) -> tuple[Label, ...]:
    times = [scale.start + share * (scale.end - scale.start) for share in (0.0, 0.5, 1.0)]
    return tuple(
        Label(scale.x(time), HEIGHT - 6, datetime.fromtimestamp(time, UTC).strftime("%H:%M")) for time in times
    )


def _summary(points: Sequence[ChartPoint], span_seconds: float) -> str:
    recommended = [point.replicas for point in points if point.replicas is not None]
    hours = span_seconds / 3600
    period = f"{hours:.0f} hours" if hours >= 2 else f"{span_seconds / 60:.0f} minutes"
    if not recommended:
        return f"No value was recommended in the last {period}."
    changes = sum(1 for one, other in pairwise(recommended) if one != other)
    times = "once" if changes == 1 else f"{changes} times"
    return (
        f"In the last {period} the recommendation was between {min(recommended)} and {max(recommended)} replicas"
        f" and changed {times}; it is {recommended[-1]} now."
    )
