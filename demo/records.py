"""What the HPA loop was told and what it decided, kept for the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Target:
    """The HPA of the demo: one average for both metrics, its bounds, and a behaviour as compressed as the day is."""

    connections_per_pod: int
    min_replicas: int
    max_replicas: int
    scale_up_period_seconds: float
    """Within this time at most 4 pods or 100 % are added, whichever is more."""
    scale_down_window_seconds: float


@dataclass(frozen=True, slots=True)
class Served:
    """One answer of the adapter, as it arrived."""

    received: float
    """Unix time."""
    stamped: float
    """Unix time that the items bear: when the query behind them was evaluated."""
    values: Mapping[str, int]
    """Milli-units by pod; for the external metric by the empty name."""


@dataclass(frozen=True, slots=True)
class Sync:
    """One round of the HPA loop."""

    seconds: float
    """On the loop's own clock."""
    replicas: int
    """How many were asked for before: the scale's `spec.replicas`."""
    status_replicas: int
    """How many pods there were."""
    pods: tuple[str, ...]
    pending: tuple[str, ...]
    """Those of the pods that had not started yet."""
    connections: Served | None
    """The Pods metric; None where the adapter answered with an error."""
    total: Served | None
    """The External metric; None likewise."""
    errors: tuple[str, ...]
    desired: int
    """How many the loop then asked for."""
    reason: str
