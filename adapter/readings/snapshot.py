"""The answer to one query of a custom metric, by namespace and object: read by every asker, never changed.

Dictionaries of strings to floats: a look-up is all that a request costs, and Python's garbage collector does not track
them, so that 250,000 values cost it nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from adapter.readings.errors import AmbiguousSamplesError, NoSampleError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sized

ROOT = ""
"""Stands for the namespace of objects that are in none."""


class Dropped(StrEnum):
    """Why a sample is nobody's value."""

    NAN = "nan"
    INF = "inf"
    STALE = "stale"
    FOREIGN_NAMESPACE = "foreign_namespace"
    UNKNOWN_OBJECT = "unknown_object"
    DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The moment for which Prometheus evaluated a query, by both clocks."""

    wall: float
    """Unix seconds, as Prometheus was told."""
    monotonic: float
    """The same moment by the clock that never jumps."""

    def age(self, wall: float, monotonic: float) -> float:
        """Return the seconds since then: the larger of what both clocks say.

        A wall clock set back must not make an answer young again, and the other clock stands still while a machine
        sleeps.
        """
        return max(wall - self.wall, monotonic - self.monotonic)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an object that has samples has no value."""

    reason: str
    ambiguous: bool = False


@dataclass(frozen=True, slots=True)
class ObjectReading:
    """Values of a custom metric at one moment."""

    evaluated: Evaluation
    values: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Namespace, object, value; all finite."""
    faults: Mapping[str, Mapping[str, Fault]] = field(default_factory=dict)
    """Namespace, object, why it has no value."""
    note: str | None = None
    """What keeps samples from finding their objects, where something does."""

    def of(self, namespace: str | None, names: Iterable[str]) -> tuple[tuple[str, float], ...]:
        """Return name and value of those objects that have one, in the order of the names.

        Raises AmbiguousSamplesError where no object has a value and one lacks it because several samples claim to be
        it.
        """
        values = self.values.get(namespace or ROOT)
        found = tuple((name, values[name]) for name in names if name in values) if values else ()
        if not found and self.faults:
            self._complain(namespace, names)
        return found

    def one(self, namespace: str | None, name: str) -> tuple[tuple[str, float], ...]:
        """Return name and value of one object; raises NoSampleError or AmbiguousSamplesError where it has none."""
        found = self.of(namespace, (name,))
        if not found:
            fault = self.faults.get(namespace or ROOT, {}).get(name)
            reason = fault.reason if fault else self.note or "Prometheus has no sample for it"
            raise NoSampleError(f"{name!r} has no value: {reason}")
        return found

    def parts(self) -> list[Sized]:
        """Return what it is made of, for freeing it piece by piece."""
        return [*self.values.values(), *self.faults.values()]

    def _complain(self, namespace: str | None, names: Iterable[str]) -> None:
        faults = self.faults.get(namespace or ROOT, {})
        for name in names:
            if (fault := faults.get(name)) and fault.ambiguous:
                raise AmbiguousSamplesError(f"{name!r} has no value: {fault.reason}")
