"""The answers to the HPA loop and its decisions, recorded for the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Target:
    """The HPA of a fleet: one average for all metrics, its bounds, and a behaviour as compressed as the day is."""

    namespace: str
    """The namespace of the fleet and of its metrics."""
    follows_forecast: bool
    """Whether the predicted load is one of its metrics."""
    connections_per_pod: int
    min_replicas: int
    max_replicas: int
    scale_up_period_seconds: float
    """The period in which at most 4 pods or 100% are added, whichever is more."""
    scale_down_window_seconds: float


@dataclass(frozen=True, slots=True)
class Served:
    """One answer of the adapter, as it arrived."""

    received: float
    """Unix time of arrival."""
    stamped: float
    """Timestamp of the items in Unix time: when the query behind them was evaluated."""
    values: Mapping[str, int]
    """Values in thousandths by pod; the external metric has the empty name."""


@dataclass(frozen=True, slots=True)
class Sync:
    """One round of the HPA loop."""

    seconds: float
    """Time by the loop's own clock."""
    replicas: int
    """How many replicas were requested before: the scale's `spec.replicas`."""
    status_replicas: int
    """How many pods there were."""
    pods: tuple[str, ...]
    pending: tuple[str, ...]
    """Pods that had not started yet."""
    connections: Served | None
    """The Pods metric; None if the adapter answered with an error."""
    total: Served | None
    """The External metric; None if the adapter answered with an error."""
    predicted: Served | None
    """The predicted load; None if the adapter answered with an error, or the fleet does not follow a forecast."""
    errors: tuple[str, ...]
    desired: int
    """How many replicas the loop then requested."""
    reason: str
