"""What is asked of the readings and what they answer: the values between them and the APIs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.objects.selectors import Selector
    from adapter.rulebook.requests import Row


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
    """Those objects of one name whose labels match: one in each namespace at most. Who asks may know of no other."""

    name: str
    selector: Selector


@dataclass(frozen=True, slots=True)
class ObjectsAnswer:
    """A custom metric's values."""

    values: tuple[tuple[str, float], ...]
    """Name and value of each object that has one, ascending by name; all finite. Empty where no object has a value."""
    evaluated_at: float
    """Moment for which Prometheus evaluated the query, in unix seconds."""
    warnings: tuple[str, ...] = ()
    """What a person should know of these values; empty where all is well."""
    window_seconds: int | None = None
    """The span that the values are measured over; None where the rule does not say."""


@dataclass(frozen=True, slots=True)
class ExternalAnswer:
    """An external metric's values."""

    rows: tuple[Row, ...]
    """All finite; empty where Prometheus has no data."""
    evaluated_at: float
    """Moment for which Prometheus evaluated the query, in unix seconds."""
    warnings: tuple[str, ...] = ()
    """What a person should know of these values; empty where all is well."""
    window_seconds: int | None = None
    """The span that the values are measured over; None where the rule does not say."""


@dataclass(frozen=True, slots=True)
class UsageItem:
    """What one pod or node uses."""

    namespace: str | None
    """None for a node."""
    name: str
    labels: Mapping[str, str]
    """The object's own; not to be changed."""
    evaluated_at: float
    """The earliest moment for which Prometheus evaluated one of the values, in unix seconds."""
    used: Mapping[str, Mapping[str, float]]
    """Container, resource, value: cores of `cpu`, bytes of `memory`. A node has one container, with an empty name.

    All finite and none negative. Each container has `cpu`, and some container has `memory`, but for a resource that is
    told of nobody in the namespace: that one is not there.
    """


@dataclass(frozen=True, slots=True)
class UsageAnswer:
    """What pods or nodes use."""

    items: tuple[UsageItem, ...]
    """Ascending by namespace and name; those of whom not all is known that should be are left out."""
    window_seconds: float
    """The span that values are measured over, as the rule files say."""
    evaluated_at: float | None
    """The earliest of all moments, in unix seconds; None where nothing had to be asked."""
    warnings: tuple[str, ...] = ()
    """What a person should know of these values; empty where all is well."""
