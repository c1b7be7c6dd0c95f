"""The chart of a recommendation's last day: the recommended and the current size as step lines in SVG.

Everything here is arithmetic on plain data; the template prints the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from recommender.page.axes import (
    LARGEST_GAP_SECONDS,
    OUTLIER_RATIO,
    Label,
    Scale,
    Span,
    period_text,
    rounded_up,
    span_of,
)
from recommender.plots.limits import usual_top

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recommender.decisions.history_point import HistoryPoint


@dataclass(frozen=True, slots=True)
class Chart:
    """Everything that the template prints; coordinates in SVG's user units."""

    recommended: str
    """Path data of the line for the recommended size."""
    current: str
    value_labels: tuple[Label, ...]
    time_labels: tuple[Label, ...]
    cut_off: Label | None
    """The mark of the largest size if it exceeds the axis."""
    noun: str
    """The unit of the sizes, in the plural."""
    summary: str
    """The chart in one sentence, for people who do not see it."""


def chart_of(points: Sequence[HistoryPoint], noun: str = "replicas") -> Chart | None:
    """Return the chart of these points, which are in ascending order of time; None if there is no value to draw."""
    values = [(point.time, value) for point in points for value in (point.replicas, point.current) if value is not None]
    if not values:
        return None
    last = max((value for time, value in values if time == values[-1][0]), default=0)
    # An even number at the top has a whole number in the middle. The current value is never cut off.
    scale = Scale(
        span_shown(points), rounded_up(usual_top((value for _, value in values), float(last), OUTLIER_RATIO), 2.0)
    )
    return Chart(
        recommended=_path([(point.time, point.replicas) for point in points], scale),
        current=_path([(point.time, point.current) for point in points], scale),
        value_labels=scale.value_labels(),
        time_labels=scale.time_labels(),
        cut_off=scale.cut_off(values),
        noun=noun,
        summary=_summary(points, noun, span_of(points[0].time, points[-1].time).seconds),
    )


def span_shown(points: Sequence[HistoryPoint]) -> Span:
    """Return the time that the charts of these points show; it includes the forecasts, if there are any."""
    forecasts = (point.load.predicted_for for point in points if point.load is not None)
    return span_of(points[0].time, max((time for time in forecasts if time is not None), default=0.0), points[-1].time)


def _path(values: Sequence[tuple[float, int | None]], scale: Scale) -> str:
    """Return a step line: a value holds until the next point. Gaps and missing values interrupt it."""
    parts: list[str] = []
    last: tuple[float, int] | None = None
    is_drawn = True
    for time, value in values:
        if value is None or last is None or time - last[0] > LARGEST_GAP_SECONDS:
            if last is not None and not is_drawn:
                parts.append(f"H{scale.x(last[0]):g}")
            # The dot of a single point is a line of no length, which round caps make visible.
            parts += [] if value is None else [f"M{scale.x(time):g} {scale.y(value):g}h0"]
            is_drawn = True
        elif is_changed := value != last[1]:
            parts.append(f"H{scale.x(time):g}V{scale.y(value):g}")
            is_drawn = is_changed
        else:
            is_drawn = False
        last = None if value is None else (time, value)
    if last is not None and not is_drawn:
        parts.append(f"H{scale.x(last[0]):g}")
    return "".join(parts)


def _summary(points: Sequence[HistoryPoint], noun: str, span_seconds: float) -> str:
    recommended = [point.replicas for point in points if point.replicas is not None]
    period = period_text(span_seconds)
    if not recommended:
        return f"No value was recommended in the last {period}."
    changes = sum(1 for one, other in pairwise(recommended) if one != other)
    times = "once" if changes == 1 else f"{changes} times"
    return (
        f"In the last {period} the recommendation was between {min(recommended)} and {max(recommended)} {noun}"
        f" and changed {times}; it is {recommended[-1]} now."
    )
