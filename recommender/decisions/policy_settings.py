"""The configuration that all kinds of recommendation have in common: targets, outputs and brakes."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.decisions.limits import Limit
    from recommender.decisions.record import TargetReference


class Output(StrEnum):
    """Where a recommendation goes."""

    METRIC = "metric"
    SCALE = "scale"
    RESIZE = "resize"
    CAPACITY_BUFFER = "capacityBuffer"


class Direction(StrEnum):
    """The direction of the changes that a pause stops."""

    UP = "up"
    DOWN = "down"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Pause:
    """A period in which changes are stopped."""

    direction: Direction
    until: float | None = None
    """Seconds since the Unix epoch; None means until the pause is removed."""


@dataclass(frozen=True, slots=True)
class MaxStep:
    """The largest single change, either as a number of replicas or as a ratio of the current size."""

    replicas: int | None = None
    ratio: float | None = None


@dataclass(frozen=True, slots=True)
class Brakes:
    """Limits on the changes of a recommendation."""

    paused: Pause | None = None
    max_step: MaxStep | None = None
    max_changes_per_hour: int | None = None


@dataclass(frozen=True, slots=True)
class Owners:
    """Field managers that own `spec.replicas` if they keep writing it. `*` matches any text."""

    managers: tuple[str, ...] = ("argocd-*", "kustomize-controller")
    autoscalers_required: bool = True
    """Whether a target is refused if the HPAs of its namespace may not be read."""


@dataclass(frozen=True, slots=True)
class RecommendationPolicy:
    """The part of a recommendation that does not depend on its kind."""

    name: str
    type: str
    """The key of the configuration: `proportional`, `predictive`, `clusterSize` or `resources`."""
    targets: tuple[TargetReference, ...] = ()
    outputs: frozenset[Output] = frozenset({Output.METRIC})
    brakes: Brakes = field(default_factory=Brakes)
    owners: Owners = field(default_factory=Owners)
    stale_after_seconds: float = 60.0
    limits: tuple[Limit, ...] = ()
    """`min` and `max`, if the configuration states them. They apply to every size, whatever its source."""
    rivals: Mapping[TargetReference, tuple[str, ...]] = field(default_factory=dict)
    """The names of the other recommendations that scale or resize a target, by target."""
    each: TargetReference | None = None
    """With `forEach`: the target that this policy is about, one of several with this name."""
    namespace: str = ""
    """The namespace of the object that defines the recommendation; empty for an entry of the configuration file."""
    backend: str = ""
    """The name of the Prometheus server that the entry chooses; empty for the default."""
    note: str = ""
    """A note for the user about the configuration; it is part of each record's message."""
    decides_once: bool = False
    """Whether this decision is the only one, as in `recommend`. Its size is the one that `run` comes to after some
    time, since a current size that is held at first would hide it."""
