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
    """Seconds since the Unix epoch."""
    began_empty: bool = field(default=False, compare=False)
    """Whether it follows from a first list of nothing, with which no second one has agreed yet. Who remembers objects
    from before the start must not believe it."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A fact that is not known now."""

    reason: str
    """The fact that is missing, and how to supply it."""
    is_refused: bool = False
    """Whether its source refuses to state it, so that waiting does not help.

    The API server: rights or the kind are missing. Prometheus: the query is wrong or asks for too much.
    """
    is_awaited: bool = False
    """Whether it has been asked for and the answer is about to come: nothing has failed so far."""
