"""The points of a recommendation's history: each poll adds one, which the page draws for a day."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """The load observed at one time, and the forecast for a later time that was in use then."""

    observed: float
    median: float | None
    """The median of the forecast; None without a forecast."""
    upper: float | None
    """The quantile of the forecast for which capacity is provided; None without a forecast."""
    predicted_for: float | None
    """The time that the forecast is about, in Unix seconds; None without a forecast."""


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """A recommendation at one time."""

    time: float
    """The time of the poll, in Unix seconds, even if its value was decided earlier and is held."""
    replicas: int | None
    """The recommended size, or for a cluster size the number of nodes; None if there was no value."""
    status: str
    binding: str | None
    current: int | None
    """The current size of the first target, or for a cluster size the number of nodes; with `forEach`, the sum of all
    known sizes. None if none is known."""
    load: LoadPoint | None = None
    """The load of a predictive recommendation; with `forEach`, the sums over all targets whose load is known."""
