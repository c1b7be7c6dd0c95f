"""The answer to one query of a custom metric, by namespace and object: read by every requester, never changed.

The values are dictionaries from strings to floats: a request costs one look-up, and Python's garbage collector does not
track them, so 250,000 values cost it nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from enum import StrEnum

from adapter.metrics.readings.errors import AmbiguousSamplesError, ForeignNamespaceError, NoSampleError, ReadingError

ROOT = ""
"""The text that takes the place of the namespace for cluster-scoped objects."""


class Dropped(StrEnum):
    """Why a sample is not the value of any object."""

    NAN = "nan"
    INF = "inf"
    STALE = "stale"
    FOREIGN_NAMESPACE = "foreign_namespace"
    UNKNOWN_OBJECT = "unknown_object"
    DUPLICATE = "duplicate"
    NEGATIVE = "negative"
    HISTOGRAM = "histogram"
    TOO_LARGE = "too_large"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The moment for which Prometheus evaluated a query, on the wall clock and on the monotonic clock."""

    wall: float
    """Unix seconds, as sent to Prometheus."""
    monotonic: float
    """The same moment by the clock that never jumps."""

    def age(self, wall: float, monotonic: float) -> float:
        """Return the seconds since the evaluation: the larger of the two clocks' values.

        A wall clock set back must not make an answer young again, and the other clock stands still while a machine
        sleeps.
        """
        return max(wall - self.wall, monotonic - self.monotonic)

    def earlier(self, seconds: float) -> Evaluation:
        """Return the moment that many seconds before this one."""
        return Evaluation(self.wall - seconds, self.monotonic - seconds) if seconds else self


def container_key(pod: str, container: str) -> str:
    """Return the name under which a container's value is stored; neither part contains a slash."""
    return f"{pod}/{container}"


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an object that has samples has no value."""

    reason: str
    ambiguous: bool = False
    is_nan: bool = False
    """Whether the value is NaN, like that of a ratio without traffic: there is no data."""
    error: type[ReadingError] | None = None
    """The error raised if no requested object has a value and this one lacks it; None in lists, which raise no
    error."""

    @classmethod
    def of_several(cls, reason: str) -> Fault:
        """Return the fault of an object for which there are several samples."""
        return cls(reason, ambiguous=True, error=AmbiguousSamplesError)


@dataclass(frozen=True, slots=True)
class ForeignSample:
    """The samples that carry an object's name with another namespace, if none carries the object's own namespace."""

    label: str
    """The label that contains the namespace."""
    namespace: str
    """The namespace of the first sample."""
    value: float | None
    """The value; None if it is not usable, or if there are several samples."""
    fault: Fault | None = None
    """Why there is no value even if the rule accepts such samples."""
    of_many: bool = False
    """Whether it stands for several objects that are not listed one by one."""

    def refused(self, namespace: str | None) -> Fault:
        """Return why these samples are not a value in the requested namespace."""
        instead = f"{self.label}={self.namespace!r} instead of {namespace!r}"
        reason = f"its samples carry another namespace, {instead}"
        if self.of_many:
            reason = (
                f"too many objects have samples that carry another namespace, such as {instead}, to know which are its "
                "own"
            )
        return Fault(f"{reason}: {FOREIGN_REPAIR}", error=ForeignNamespaceError)


FOREIGN_REPAIR = (
    "restrict the series in the rule's metricsQuery by <<.LabelMatchers>>, aggregate that label away, or write "
    "`foreignNamespaces: allow` into the rule if they are meant"
)
"""The repair for samples of another namespace."""


@dataclass(frozen=True, slots=True)
class ObjectReading:
    """Values of a custom metric at one moment."""

    evaluated: Evaluation
    values: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Values by namespace and object; all are finite."""
    faults: Mapping[str, Mapping[str, Fault]] = field(default_factory=dict)
    """The reason for a missing value, by namespace and object."""
    note: str | None = None
    """The reason why samples do not match their objects; None if they do."""
    containers: Mapping[str, Mapping[str, str]] | None = None
    """The names of a pod's containers, joined by slashes, by namespace and pod, if samples are those of containers:
    then the objects in `values` and `faults` are called `POD/CONTAINER`. They are strings, which the collector does not
    track."""
    asked: frozenset[str] | None = None
    """The objects that were requested; None for all."""
    times: Mapping[str, Mapping[str, float]] | None = None
    """The time (Unix seconds) of the samples of an object's series, by namespace and object: the earliest of their
    newest ones. None if the rule does not limit their age. """
    steady_seconds: float = 0.0
    """For how many seconds Prometheus had been up at that moment."""
    foreign: Mapping[str, ForeignSample] = field(default_factory=dict)
    """The samples of an object from another namespace than the one that the query was restricted to, by object, for
    objects that have neither a value nor a fault of their own."""
    foreign_rest: ForeignSample | None = None
    """One entry for the samples from other namespaces of objects beyond the limit; None if the limit is not reached."""
    is_exact: bool = False
    """Whether the query asked for certain objects, so that a sample of another one is due to the rule itself."""
    has_strays: bool = False
    """Whether there were samples of objects that were not asked for."""
    caution: str | None = None
    """Doubts about values that are served nevertheless."""

    def of(
        self, namespace: str | None, names: Iterable[str], *, allow_foreign: bool = False
    ) -> tuple[tuple[str, float], ...]:
        """Return name and value of the objects that have one, in the order of the names.

        Raises AmbiguousSamplesError or ForeignNamespaceError if no object has a value and one lacks it for that reason,
        and NoSampleError if there are samples but none of them names an object or is a number.
        """
        found = self._found_values(namespace, names, allow_foreign=allow_foreign)
        if not found and self.note and not (self.values or self.faults or self.foreign):
            raise NoSampleError(f"no object has a value: {self.note}")
        return found

    def one(self, namespace: str | None, name: str, *, allow_foreign: bool = False) -> tuple[tuple[str, float], ...]:
        """Return name and value of one object; if it has none, raises the errors of `of`, or else NoSampleError."""
        found = self._found_values(namespace, (name,), allow_foreign=allow_foreign)
        if not found:
            fault = self.fault_of(namespace, name, allow_foreign=allow_foreign)
            reason = fault.reason if fault else self.note or "Prometheus has no sample for it"
            raise NoSampleError(f"{name!r} has no value: {reason}")
        return found

    def fault_of(self, namespace: str | None, name: str, *, allow_foreign: bool = False) -> Fault | None:
        """Return why an object has no value although it has samples; None if it has a value or no sample."""
        fault = self.faults.get(namespace or ROOT, {}).get(name)
        foreign = self.foreign_of(namespace, name)
        if foreign is None:
            return fault
        return foreign.fault if allow_foreign else foreign.refused(namespace)

    def foreign_of(self, namespace: str | None, name: str) -> ForeignSample | None:
        """Return the samples from another namespace for an object that has none of its own."""
        found = self.foreign.get(name, self.foreign_rest)
        own = self.values.get(namespace or ROOT, ()), self.faults.get(namespace or ROOT, ())
        return None if found is None or any(name in part for part in own) else found

    def faults_of(
        self, namespace: str | None, names: Iterable[str], *, allow_foreign: bool = False
    ) -> Iterator[tuple[str, Fault]]:
        """Yield the objects that have samples but no value, with the reason."""
        if self.foreign or self.foreign_rest or self.faults.get(namespace or ROOT):
            for name in names:
                fault = self.fault_of(namespace, name, allow_foreign=allow_foreign)
                if fault is not None:
                    yield name, fault

    def keys(self, namespace: str | None, name: str) -> tuple[str, ...]:
        """Return the names under which an object has values: its own, or those of its containers."""
        if self.containers is None:
            return (name,)
        containers = self.containers.get(namespace or ROOT, {}).get(name)
        return () if containers is None else tuple(container_key(name, one) for one in containers.split("/"))

    def has_no_data(self, namespace: str | None, names: Collection[str], *, allow_foreign: bool = False) -> bool:
        """Return whether Prometheus certainly has nothing for any of these objects.

        That is not certain if there are samples that are infinite, ambiguous or from another namespace, if some name no
        object or one that was not requested, or if one of `names` was not requested.
        """
        return (
            self.note is None
            and not self.has_strays
            and all(self._lacks_data(namespace, name, allow_foreign=allow_foreign) for name in names)
            and not (self.is_exact and self.asked is None and self._has_others(namespace, names))
        )

    def is_nan(self, namespace: str | None, name: str, *, allow_foreign: bool = False) -> bool:
        """Return whether the value of an object is NaN."""
        fault = self.fault_of(namespace, name, allow_foreign=allow_foreign)
        return fault is not None and fault.is_nan

    def sample_age(self, namespace: str | None, name: str) -> float | None:
        """Return how old the samples of an object's value were at the evaluation, in seconds; None if there was none.

        The age of a series is that of its newest sample, and the oldest series of the object counts.
        """
        moment = (self.times or {}).get(namespace or ROOT, {}).get(name)
        return None if moment is None else self.evaluated.wall - moment

    def flag_stale_values(self, limit_seconds: float) -> Iterator[bool]:
        """Yield, for each value, whether its samples were older than `limit_seconds` at its evaluation."""
        for namespace, values in self.values.items():
            for name in values:
                age = self.sample_age(namespace, name)
                yield age is None or age > limit_seconds

    def pieces(self) -> list[Sized]:
        """Return the parts of the reading, so that they can be freed one by one."""
        more = (self.containers or {}, self.times or {})
        own = (*self.values.values(), *self.faults.values(), self.foreign)
        return [*own, *(part for found in more for part in found.values())]

    def _lacks_data(self, namespace: str | None, name: str, *, allow_foreign: bool) -> bool:
        """Return whether a requested object has no samples, or nothing but NaN."""
        if name in self.values.get(namespace or ROOT, ()) or (self.asked is not None and name not in self.asked):
            return False
        fault = self.fault_of(namespace, name, allow_foreign=allow_foreign)
        return self.foreign_of(namespace, name) is None if fault is None else fault.is_nan

    def _has_others(self, namespace: str | None, names: Collection[str]) -> bool:
        """Return whether there are samples for objects that are not among the names."""
        found = (self.values.get(namespace or ROOT, ()), self.faults.get(namespace or ROOT, ()), self.foreign)
        return any(name not in names for part in found for name in part)

    def _found_values(
        self, namespace: str | None, names: Iterable[str], *, allow_foreign: bool
    ) -> tuple[tuple[str, float], ...]:
        values = self.values.get(namespace or ROOT, {})
        if allow_foreign and self.foreign:
            asked = ((name, values.get(name, self._admitted_value(namespace, name))) for name in names)
            found = tuple((name, value) for name, value in asked if value is not None)
        else:
            found = tuple((name, values[name]) for name in names if name in values) if values else ()
        if not found:
            self._complain(namespace, names, allow_foreign=allow_foreign)
        return found

    def _admitted_value(self, namespace: str | None, name: str) -> float | None:
        """Return an object's value from another namespace."""
        foreign = self.foreign_of(namespace, name)
        return None if foreign is None else foreign.value

    def _complain(self, namespace: str | None, names: Iterable[str], *, allow_foreign: bool) -> None:
        for name, fault in self.faults_of(namespace, names, allow_foreign=allow_foreign):
            if fault.error is not None:
                raise fault.error(f"{name!r} has no value: {fault.reason}")
