"""What is asked of the readings and what they answer: the values between them and the APIs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
class ObjectsAnswer:
    """A custom metric's values."""

    values: tuple[tuple[str, float], ...]
    """Name and value of each object that has one, ascending by name; all finite. Empty where no object has a value."""
    evaluated_at: float
    """Moment for which Prometheus evaluated the query, in unix seconds."""
    warnings: tuple[str, ...] = ()
    """What a person should know of these values; empty where all is well."""


@dataclass(frozen=True, slots=True)
class ExternalAnswer:
    """An external metric's values."""

    rows: tuple[Row, ...]
    """All finite; empty where Prometheus has no data."""
    evaluated_at: float
    """Moment for which Prometheus evaluated the query, in unix seconds."""
    warnings: tuple[str, ...] = ()
    """What a person should know of these values; empty where all is well."""
