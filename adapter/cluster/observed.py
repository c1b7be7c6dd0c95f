"""A fact that is known, with its time, or unknown, with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Observed(Generic[T]):
    """A fact, and when its source last confirmed it."""

    value: T
    time: float
    """Seconds since the Unix epoch."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A fact that cannot be stated now."""

    reason: str
    """What is missing, and how to supply it."""
    is_refused: bool = False
    """Whether the API server refuses to state it, so that waiting does not help: rights or the kind are missing."""
    is_awaited: bool = False
    """Whether it has been asked for and the answer is about to come: nothing has failed so far."""
