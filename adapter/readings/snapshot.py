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
    from collections.abc import Iterable, Iterator, Mapping, Sized

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
    NEGATIVE = "negative"


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


def container_key(pod: str, container: str) -> str:
    """Return by which name a container's value is filed: neither of its parts has a slash in it."""
    return f"{pod}/{container}"


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an object that has samples has no value."""

    reason: str
    ambiguous: bool = False
    is_nan: bool = False
    """Not a number is what a ratio is without traffic: there is no data."""


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
    containers: Mapping[str, Mapping[str, str]] | None = None
    """Namespace, pod, and the names of its containers with slashes between, where samples are those of containers:
    then the objects in `values` and `faults` are called `POD/CONTAINER`. Strings, for the sake of the collector."""
    asked: frozenset[str] | None = None
    """The objects that were asked for; None for all."""
    times: Mapping[str, Mapping[str, float]] | None = None
    """Namespace, object, and for which moment (unix seconds) its series had samples: the earliest of their newest ones.

    None where the rule does not limit their age.
    """
    steady_seconds: float = 0.0
    """For how long Prometheus had been there at that moment."""
    caution: str | None = None
    """What is doubtful about values that are there nevertheless."""

    def of(self, namespace: str | None, names: Iterable[str]) -> tuple[tuple[str, float], ...]:
        """Return name and value of those objects that have one, in the order of the names.

        Raises AmbiguousSamplesError where no object has a value and one lacks it because several samples claim to be
        it, and NoSampleError where samples came and not one of them tells its object.
        """
        found = self._found(namespace, names)
        if not found and self.note and not self.values and not self.faults:
            raise NoSampleError(f"no object has a value: {self.note}")
        return found

    def one(self, namespace: str | None, name: str) -> tuple[tuple[str, float], ...]:
        """Return name and value of one object; raises NoSampleError or AmbiguousSamplesError where it has none."""
        found = self._found(namespace, (name,))
        if not found:
            fault = self.faults.get(namespace or ROOT, {}).get(name)
            reason = fault.reason if fault else self.note or "Prometheus has no sample for it"
            raise NoSampleError(f"{name!r} has no value: {reason}")
        return found

    def keys(self, namespace: str | None, name: str) -> tuple[str, ...]:
        """Return by which names an object has values: its own, or those of its containers."""
        if self.containers is None:
            return (name,)
        containers = self.containers.get(namespace or ROOT, {}).get(name)
        return () if containers is None else tuple(container_key(name, one) for one in containers.split("/"))

    def has_no_data(self, namespace: str | None, names: Iterable[str]) -> bool:
        """Return whether it is sure that Prometheus has nothing for any of these objects.

        Not where samples came that are infinite or claimed by several, where some found no object at all, and where
        an object was not asked for.
        """
        values, faults = self.values.get(namespace or ROOT, {}), self.faults.get(namespace or ROOT, {})
        return self.note is None and all(
            name not in values
            and (name not in faults or faults[name].is_nan)
            and (self.asked is None or name in self.asked)
            for name in names
        )

    def is_nan(self, namespace: str | None, name: str) -> bool:
        """Return whether Prometheus gave an object a value that is no number."""
        fault = self.faults.get(namespace or ROOT, {}).get(name)
        return fault is not None and fault.is_nan

    def sample_age(self, namespace: str | None, name: str) -> float | None:
        """Return how old the samples of an object's value were at the evaluation, in seconds; None if none was there.

        The oldest of its series tells, each by its newest sample.
        """
        moment = (self.times or {}).get(namespace or ROOT, {}).get(name)
        return None if moment is None else self.evaluated.wall - moment

    def aged(self, limit_seconds: float) -> Iterator[bool]:
        """Yield for each value whether its samples were older than that when it was made."""
        for namespace, values in self.values.items():
            for name in values:
                age = self.sample_age(namespace, name)
                yield age is None or age > limit_seconds

    def parts(self) -> list[Sized]:
        """Return what it is made of, for freeing it piece by piece."""
        more = (self.containers or {}, self.times or {})
        return [*self.values.values(), *self.faults.values(), *(part for found in more for part in found.values())]

    def _found(self, namespace: str | None, names: Iterable[str]) -> tuple[tuple[str, float], ...]:
        values = self.values.get(namespace or ROOT)
        found = tuple((name, values[name]) for name in names if name in values) if values else ()
        if not found and self.faults:
            self._complain(namespace, names)
        return found

    def _complain(self, namespace: str | None, names: Iterable[str]) -> None:
        faults = self.faults.get(namespace or ROOT, {})
        for name in names:
            if (fault := faults.get(name)) and fault.ambiguous:
                raise AmbiguousSamplesError(f"{name!r} has no value: {fault.reason}")
