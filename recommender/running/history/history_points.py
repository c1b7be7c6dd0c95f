"""The points of the history, from records and as rows of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.objects.integers import INT64_MAX
from recommender.decisions.history_point import HistoryPoint, LoadPoint
from recommender.decisions.loads.prediction import forecast_of
from recommender.decisions.summary import by_name, summary_of
from recommender.kinds.table import kind_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from recommender.decisions.record import Record

INSERT: Final = (
    "INSERT OR REPLACE INTO points"
    " (name, time, replicas, status, binding, current, observed, median, upper, predicted_for)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
SELECT: Final = (
    "SELECT time, replicas, status, binding, current, observed, median, upper, predicted_for"
    " FROM points WHERE name = ? AND time >= ? ORDER BY time"
)


def points_of(now: float, records: Iterable[Record]) -> Iterator[tuple[str, HistoryPoint]]:
    """Yield the name and point of each recommendation; with `forEach`, the sums of all targets and the worst status."""
    for name, group in by_name(records).items():
        if any(record.each is not None for record in group):
            summary = summary_of(group)
            yield name, HistoryPoint(now, summary.replicas, summary.worst.value, None, summary.current, _load_of(group))
            continue
        for record in group:
            kind, load = kind_named(record.type), _load_of((record,))
            replicas, current = (None, None) if kind is None else kind.charted_sizes(record)
            yield name, HistoryPoint(now, replicas, record.status.value, record.binding, current, load)


def _load_of(records: Iterable[Record]) -> LoadPoint | None:
    """Return the load with its forecast, or the sums for several targets; None if no load is known."""
    loads = [found.load for record in records if (found := forecast_of(record)) is not None]
    if not loads:
        return None
    observed = sum(load.now for load in loads)
    forecasts = [
        (load.quantiles.get("0.5", load.predicted), load.predicted, load.at)
        for load in loads
        if load.predicted is not None and load.at is not None
    ]
    # The sum of only some forecasts, shown beside the load of all targets, would look like a drop.
    if len(forecasts) < len(loads):
        return LoadPoint(observed, None, None, None)
    medians, uppers, times = zip(*forecasts, strict=True)
    return LoadPoint(observed, sum(medians), sum(uppers), max(times))


def row_of(point: HistoryPoint) -> tuple[object, ...]:
    """Return the values that `INSERT` takes after the name."""
    load = point.load
    forecast = (None,) * 4 if load is None else (load.observed, load.median, load.upper, load.predicted_for)
    return (point.time, _storable(point.replicas), point.status, point.binding, _storable(point.current), *forecast)


def _storable(size: int | None) -> int | None:
    """Return a size; None for one that no column of the table can hold, which would keep all points from it."""
    return size if size is None or size <= INT64_MAX else None


def point_of(row: Sequence[Any]) -> HistoryPoint:
    """Return the point of a row of `SELECT`."""
    time, replicas, status, binding, current, observed, median, upper, predicted_for = row
    load = None if observed is None else LoadPoint(observed, median, upper, predicted_for)
    return HistoryPoint(time, replicas, status, binding, current, load)
