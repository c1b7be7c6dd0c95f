"""Requests to the readings and their answers: the values between them and the APIs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.objects.selectors import Selector
    from adapter.metrics.rulebook.requests import Row


@dataclass(frozen=True, slots=True)
class ByName:
    """One object, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class BySelector:
    """All objects whose labels match."""

    selector: Selector


@dataclass(frozen=True, slots=True)
class NamedBySelector:
    """The objects of one name whose labels match, at most one in each namespace. The client may see no others."""

    name: str
    selector: Selector


@dataclass(frozen=True, slots=True)
class ObjectsAnswer:
    """A custom metric's values."""

    values: tuple[tuple[str, float], ...]
    """Name and value of each object that has one, ascending by name; all finite. Empty if no object has a value."""
    evaluated_at: float
    """Moment for which Prometheus evaluated the query, in Unix seconds."""
    warnings: tuple[str, ...] = ()
    """Warnings about these values; empty if there are none."""
    window_seconds: int | None = None
    """The time that the values are measured over, in seconds; None if the rule does not state it."""


@dataclass(frozen=True, slots=True)
class ExternalAnswer:
    """An external metric's values."""

    rows: tuple[Row, ...]
    """Rows with finite values; empty if Prometheus has no data."""
    evaluated_at: float
    """Moment for which Prometheus evaluated the query, in Unix seconds."""
    warnings: tuple[str, ...] = ()
    """Warnings about these values; empty if there are none."""
    window_seconds: int | None = None
    """The time that the values are measured over, in seconds; None if the rule does not state it."""


@dataclass(frozen=True, slots=True)
class UsageItem:
    """Resource usage of one pod or node."""

    namespace: str | None
    """The namespace of the pod; None for a node."""
    name: str
    labels: Mapping[str, str] = field(hash=False)
    """The object's labels; not to be changed."""
    evaluated_at: float
    """The earliest moment for which Prometheus evaluated one of the values, in Unix seconds."""
    used: Mapping[str, Mapping[str, float]] = field(hash=False)
    """The values by container and resource: cores of `cpu`, bytes of `memory`. A node has one container, with an empty
    name.

    All values are finite and none is negative. Each container has `cpu`, and some container has `memory`. A resource
    that has no value for any object in the namespace is left out."""


@dataclass(frozen=True, slots=True)
class UsageAnswer:
    """Resource usage of pods or nodes."""

    items: tuple[UsageItem, ...]
    """The objects, ascending by namespace and name; those that lack a value that they should have are left out."""
    window_seconds: float
    """The time that the values are measured over, in seconds, as the rule files state it."""
    evaluated_at: float | None
    """The earliest of all moments, in Unix seconds; None if nothing had to be queried."""
    warnings: tuple[str, ...] = ()
    """Warnings about these values; empty if there are none."""
