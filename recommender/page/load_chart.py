"""The chart of a load's last day: the observed load, and the forecasts for the same time.

A forecast is drawn at the time that it predicts, so that it can be compared with the load that followed. The band
reaches from the median to the quantile that the capacity is planned for. There are more points than pixels, so every
few pixels show the largest of their values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from recommender.page.axes import (
    LARGEST_GAP_SECONDS,
    OUTLIER_RATIO,
    Label,
    Scale,
    format_tick,
    period_text,
    rounded_up,
    span_of,
)
from recommender.page.size_chart import span_shown
from recommender.plots.limits import usual_top

if TYPE_CHECKING:
    from recommender.decisions.history_point import HistoryPoint

_UNITS_A_PLACE: Final = 2.0
"""Width of the interval that is drawn as one point, in SVG's user units."""
_LEAST_TOP: Final = 1e-9


@dataclass(frozen=True, slots=True)
class LoadChart:
    """Everything that the template prints; coordinates in SVG's user units."""

    observed: str
    """Path data of the line for the observed load."""
    median: str
    band: str
    """Path data of the areas between the median and the upper quantile."""
    now: float | None
    """Position of the present, if the forecast reaches visibly beyond it."""
    value_labels: tuple[Label, ...]
    time_labels: tuple[Label, ...]
    cut_off: Label | None
    """The mark of the largest load or forecast if it exceeds the axis."""
    summary: str
    """The chart in one or two sentences, for people who do not see it."""


@dataclass(frozen=True, slots=True)
class _Expected:
    time: float
    """The time that is forecast."""
    median: float
    upper: float


def load_chart_of(points: Sequence[HistoryPoint]) -> LoadChart | None:
    """Return the chart of these points, which are in ascending order of time; None if there is no load to draw."""
    observed = [
        (point.time, point.load.observed)
        for point in points
        if point.load is not None and math.isfinite(point.load.observed)
    ]
    if not observed:
        return None
    expected = _expected_loads(points)
    drawn = [*observed, *((each.time, each.upper) for each in expected)]
    # Neither the current load nor the next forecast is ever cut off.
    least = max(0.0, observed[-1][1], expected[-1].upper if expected else 0.0)
    most = usual_top((value for _, value in drawn), least, OUTLIER_RATIO)
    scale = Scale(span_shown(points), rounded_up(most, _LEAST_TOP) if most > 0 else 1.0)
    now = scale.x(points[-1].time)
    return LoadChart(
        observed="".join(map(_line, _runs(observed, scale))),
        median="".join(map(_line, _runs(((each.time, each.median) for each in expected), scale))),
        band=_band(expected, scale),
        now=now if scale.x(scale.span.end) - now > _UNITS_A_PLACE else None,
        value_labels=scale.value_labels(),
        time_labels=scale.time_labels(),
        cut_off=scale.cut_off(drawn),
        summary=_summary(observed, expected),
    )


def _expected_loads(points: Iterable[HistoryPoint]) -> list[_Expected]:
    """Return the forecasts sorted by the time that they predict, since a change of the horizon may mix their order."""
    found = (
        _Expected(load.predicted_for, load.median, load.upper)
        for point in points
        if (load := point.load) is not None
        and load.predicted_for is not None
        and load.median is not None
        and load.upper is not None
        and math.isfinite(load.upper + load.median)
    )
    return sorted(found, key=lambda each: each.time)


_Run = list[tuple[float, float]]
"""Points in SVG's user units, without a gap between them."""


def _runs(values: Iterable[tuple[float, float]], scale: Scale) -> list[_Run]:
    """Return the points of each line between two gaps; of points within a few pixels, only the largest is kept."""
    runs: list[_Run] = []
    last: float | None = None
    for time, value in values:
        x, y = scale.x(time), scale.y(value)
        if last is None or time - last > LARGEST_GAP_SECONDS:
            runs.append([(x, y)])
        elif x - runs[-1][-1][0] < _UNITS_A_PLACE:
            place, lowest = runs[-1][-1]
            # The origin is at the top.
            runs[-1][-1] = (place, min(lowest, y))
        else:
            runs[-1].append((x, y))
        last = time
    return runs


def _line(run: _Run) -> str:
    first, *rest = run
    # The dot of a single point is a line of no length, which round caps make visible.
    return f"M{first[0]:g} {first[1]:g}" + ("".join(f"L{x:g} {y:g}" for x, y in rest) or "h0")


def _band(expected: Sequence[_Expected], scale: Scale) -> str:
    """Return the SVG path of the areas between median and upper forecast.

    Both edges of an area have the same x coordinates, since gaps and pixels depend only on the times.
    """
    uppers = _runs(((each.time, each.upper) for each in expected), scale)
    medians = _runs(((each.time, each.median) for each in expected), scale)
    return "".join(
        "M" + "L".join(f"{x:g} {y:g}" for x, y in (*upper, *reversed(median))) + "Z"
        for upper, median in zip(uppers, medians, strict=True)
    )


def _summary(observed: Sequence[tuple[float, float]], expected: Sequence[_Expected]) -> str:
    values = [value for _, value in observed]
    period = period_text(span_of(observed[0][0], observed[-1][0]).seconds)
    text = (
        f"In the last {period} the load was between {format_tick(min(values))} and {format_tick(max(values))};"
        f" it is {format_tick(values[-1])} now."
    )
    if not expected:
        return f"{text} There is no forecast."
    last = expected[-1]
    time = datetime.fromtimestamp(last.time, UTC).strftime("%H:%M")
    return (
        f"{text} For {time} a median of {format_tick(last.median)} is expected, and capacity is planned for "
        f"{format_tick(last.upper)}."
    )
