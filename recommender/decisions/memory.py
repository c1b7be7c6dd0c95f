"""What a decision depends on besides configuration and inputs; the next leader goes on from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.cluster_size.model.memory import ClusterSizeMemory
    from recommender.decisions.record import TargetReference


@dataclass(frozen=True, slots=True)
class LastValue:
    """The last value that all constraints let through."""

    replicas: int
    decided: float
    """When it was decided, in seconds since the Unix epoch."""
    confirmed: float
    """When fresh inputs last led to it, in seconds since the Unix epoch."""


@dataclass(frozen=True, slots=True)
class LastParameters:
    """Parameters of a ConfigMap that could be read, kept for the time in which it cannot."""

    mode: str
    text: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of one recommendation."""

    last: LastValue | None = None
    changes: tuple[float, ...] = ()
    """Times of the changes of the value in the last hour, in seconds since the Unix epoch, ascending."""
    parameters: LastParameters | None = None
    rungs: Mapping[str, int] = field(default_factory=dict)
    """By driver, the value that hysteresis holds."""
    policy: Mapping[str, float] = field(default_factory=dict)
    """What the policy of a predictive recommendation remembers: capacities and times, by name."""
    cluster_size: ClusterSizeMemory | None = None
    """Of a cluster size recommendation: timers, cool-downs, back-offs, and what it recommended last."""
    by_target: Mapping[TargetReference, Memory] = field(default_factory=dict)
    """With `forEach`: the memory of each target, which holds no further targets."""
