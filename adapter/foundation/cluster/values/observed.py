"""A fact that is known, with its time, or unknown, with the reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Observed(Generic[T]):
    """A fact, and when its source last confirmed it."""

    value: T
    time: float
    """When the source last confirmed the fact, in Unix seconds."""
    began_empty: bool = field(default=False, compare=False)
    """Whether it follows from an empty first list that no second list has confirmed. Readers that remember objects from
    before the start must not rely on it.
    """
    failure: str = field(default="", compare=False)
    """Why the source has not confirmed the fact since then; empty if nothing has failed."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A fact that is not known now."""

    reason: str
    """The fact that is missing, and how to supply it."""
    is_refused: bool = False
    """Whether its source refuses to state it, so that waiting does not help.

    The API server refuses if the rights or the kind are missing, and Prometheus if a query is wrong or too large."""
    is_awaited: bool = False
    """Whether it has been requested and its answer is about to arrive: nothing has failed so far."""
    is_absent: bool = False
    """Whether its source does not have the kind of object at all, so that there are no objects of it."""
