"""What cluster size recommendations remember from one decision to the next, also over a restart.

All times are seconds since the Unix epoch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class BackOff:
    """A group that failed to grow is left alone for a while."""

    until: float
    duration_seconds: float
    failed_at: float
    reason: str


@dataclass(frozen=True, slots=True)
class RequestedNodes:
    """Nodes that were asked for and have not all come."""

    size: int
    """The size that was written."""
    since: float


@dataclass(frozen=True, slots=True)
class AskedSize:
    """A size of a group that this program began to write, while it is not known whether it was written."""

    size: int
    before: int
    """The size at which it was decided."""
    since: float
    removes: bool = False
    """Whether nodes are removed by it."""


@dataclass(frozen=True, slots=True)
class ClusterSizeMemory:
    """The memory of one recommendation."""

    unneeded_since: Mapping[str, float] = field(default_factory=dict)
    """By node."""
    unremovable_until: Mapping[str, float] = field(default_factory=dict)
    """By node that the simulation could not remove: when it is looked at again."""
    last_scale_up: float | None = None
    last_delete: float | None = None
    last_failure: float | None = None
    """Of a removal."""
    requested: Mapping[str, RequestedNodes] = field(default_factory=dict)
    """By group, only where this program has written the size."""
    asked: Mapping[str, AskedSize] = field(default_factory=dict)
    """By group. Stored before the write, so that a process that is killed after it still knows of it."""
    back_offs: Mapping[str, BackOff] = field(default_factory=dict)
    """By group."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """By group, what was recommended last, for brakes and for a poll without inputs."""
    decided: float | None = None
    confirmed: float | None = None
    changes: tuple[float, ...] = ()
