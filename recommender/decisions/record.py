"""The record of one decision: its inputs, each step, its limits, and the outcome for each target.

There is one type for every kind of recommendation. Table, JSON, metrics, log lines, events and the page are all made
from it, so that no two of them can differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


class Status(StrEnum):
    """Whether a recommendation can be followed."""

    OK = "ok"
    HELD = "held"
    """A pause, a brake or a missing input keeps the last value; the message says which, and until when."""
    STALE = "stale"
    """Inputs are missing or too old, and so is the last value (`staleAfter`); there is no value."""
    ERROR = "error"
    """There is no value, because the configuration or an input is wrong."""


class TargetAction(StrEnum):
    """The action on a target."""

    NONE = "none"
    """Nothing: the target has the recommended size, there is no value, or a pause, a rollout or a missing input stops
    the change."""
    METRIC = "metric"
    """The value is published, and something else, such as an HPA, acts on it."""
    SCALE = "scale"
    """The recommender writes the size."""
    RESIZE = "resize"
    """The recommender writes the requests of the target's containers."""
    REFUSED = "refused"
    """The recommender does not write the size, because something else owns it or may own it."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a calculation."""

    step: str
    """`MODE/DRIVER`, such as `linear/nodes`, or the name of a constraint, such as `max`."""
    value: float
    """The value after this step; for `MODE/DRIVER`, that driver's own value."""
    detail: str
    """The calculation, such as `ceil(176 / 16)`."""


@dataclass(frozen=True, slots=True, order=True)
class TargetReference:
    """An object with a scale subresource."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """Return text such as `Deployment kube-system/coredns`."""
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class TargetOutcome:
    """The outcome of a decision for one target."""

    target: TargetReference
    current_replicas: int | None
    """The current size; None if it is not known."""
    action: TargetAction
    owner: str | None = None
    """The owner of the size, if the action is `refused`."""
    message: str = ""
    """Why the target is refused, why its last scale call failed, or a note such as that a later upgrade will write
    replicas again."""
    recommended_replicas: int | None = None
    """The size for this target, since each of several targets has its own brakes, pause and memory; None if there is no
    value."""
    has_failed: bool = False
    """Whether the last scale call failed, so that the size is not written yet; `message` says why."""
    is_awaited: bool = False
    """Whether it is still looked up if something owns the size, which is no fault."""


class Details(Protocol):
    """The part of a record that only one kind has. That kind knows how it is shown (`kinds/kind.py`)."""

    @property
    def has_value(self) -> bool:
        """Whether the details contain a value that can be followed, other than the number of replicas."""


@dataclass(frozen=True, slots=True)
class Record:
    """One decision of one recommendation."""

    name: str
    type: str
    """The key of the configuration: `proportional`, `predictive`, `clusterSize` or `resources`."""
    time: float
    """When the value was decided, in Unix seconds. A value that is held because an
    input is missing keeps its old time."""
    status: Status
    message: str
    replicas: int | None = None
    """The size after all constraints; None if there is no value. For several targets, the largest of their sizes."""
    inputs: Mapping[str, float] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    binding: str | None = None
    """The last step that changed the value; if several drivers share the largest value, the first of them."""
    targets: tuple[TargetOutcome, ...] = ()
    details: Details | None = None
    """The part that only records of this kind have."""
    each: TargetReference | None = None
    """With `forEach`: the target that this record is about. Several records then have this name."""

    @property
    def has_value(self) -> bool:
        """Whether there is a value that can be followed."""
        has_value = self.replicas is not None or (self.details is not None and self.details.has_value)
        return self.status in {Status.OK, Status.HELD} and has_value
