"""The usage of the requested objects of one namespace by its readings, and the reasons for leaving objects out."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from adapter.metrics.readings.errors import NoSampleError
from adapter.metrics.readings.samples.object_reading import ROOT, ObjectReading
from adapter.metrics.rulebook.parsing.resource_rules import NODES

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Iterator, Mapping

    from adapter.foundation.objects.resources import Resource
    from adapter.metrics.readings.asking.demand import DemandEntry
    from adapter.metrics.rulebook.model import Metric

_CPU = "cpu"
_NO_SAMPLE = "Prometheus has no sample for it"


@dataclass(slots=True)
class NamespaceUsage:
    """The requested objects in one namespace, or the requested cluster-scoped objects."""

    namespace: str | None
    names: Collection[str]
    entries: dict[str, DemandEntry] = field(default_factory=dict)
    """Entries by resource: `cpu`, `memory`."""
    readings: dict[str, ObjectReading] = field(default_factory=dict)


def usage_of(space: NamespaceUsage, name: str, ended: Container[str]) -> Mapping[str, Mapping[str, float]] | None:
    """Return what an object's containers use by resource; those of a node have an empty name.

    Containers that have `ended` are left out. None if a value is missing that would be read as 0.
    """
    used: dict[str, dict[str, float]] = {}
    for resource, reading in space.readings.items():
        values = reading.values.get(space.namespace or ROOT, {})
        keys = reading.keys(space.namespace, name)
        if not keys:
            return None
        for key in keys:
            value = values.get(key)
            if value is None:
                return None
            if key in ended:
                continue
            used.setdefault(key[len(name) + 1 :], {})[resource] = value
    if _CPU in space.readings and not all(_CPU in own for own in used.values()):
        return None
    return dict(sorted(used.items()))


def cautions(answered: Iterable[NamespaceUsage]) -> list[str]:
    """Return the doubts about the values of each resource, each once."""
    found = (
        f"{space.entries[resource].metric.qualified}: {reading.caution}"
        for space in answered
        for resource, reading in space.readings.items()
        if reading.caution is not None and any(_names_with_values(space, resource, name) for name in space.names)
    )
    return list(dict.fromkeys(found))


def unlisted_reasons(kind: Resource, answered: Collection[NamespaceUsage], metrics: Iterable[Metric]) -> Iterator[str]:
    """Yield, for each resource without a value for any requested object, what this does to the list, and why."""
    served = [metric for metric in metrics if any(metric.name in space.readings for space in answered)]
    lacking = [metric for metric in served if not any(_has_value(space, metric.name) for space in answered)]
    for metric in lacking:
        # Prometheus usually names nodes by their addresses.
        values = (space.readings[metric.name].values.get(ROOT, {}) for space in answered) if kind == NODES else ()
        unrequested = next(chain.from_iterable(values), None)
        if unrequested is not None:
            yield (
                f"{metric.qualified} has no value for any requested node: the label {metric.object_label!r} holds "
                "names "
                f"such as {unrequested!r}"
            )
        elif len(lacking) < len(served):
            yield f"{metric.qualified} has no value for any requested {kind.singular}, so none is listed"


def _has_value(space: NamespaceUsage, resource: str) -> bool:
    """Return whether any of the requested objects has a value of a resource."""
    return any(_names_with_values(space, resource, name) for name in space.names)


def _names_with_values(space: NamespaceUsage, resource: str, name: str) -> set[str]:
    """Return the names under which an object has values of a resource."""
    reading = space.readings.get(resource)
    if reading is None:
        return set()
    values = reading.values.get(space.namespace or ROOT, {})
    return {key for key in reading.keys(space.namespace, name) if key in values}


def no_sample(answered: Iterable[NamespaceUsage], name: str) -> NoSampleError:
    """Return the error that says why this object has no usage."""
    return NoSampleError(next((_why(space, name) for space in answered), _NO_SAMPLE))


def _why(space: NamespaceUsage, name: str) -> str:
    for resource, reading in space.readings.items():
        faults = reading.faults.get(space.namespace or ROOT, {})
        for key in reading.keys(space.namespace, name):
            if key in faults:
                return f"{key.rstrip('/')!r} has no value of {resource}: {faults[key].reason}"
    found = {resource: _names_with_values(space, resource, name) for resource in space.readings}
    notes = {resource: reading.note for resource, reading in space.readings.items()}
    if not any(found.values()):
        return next((note for note in notes.values() if note), _NO_SAMPLE)
    for resource, own in found.items():
        if not own:
            return f"it has no value of {resource}: {notes[resource] or _NO_SAMPLE}"
    containers = set[str]().union(*found.values()) - found.get(_CPU, set())
    return f"{min(containers, default=name)!r} has no value of {_CPU}: {_NO_SAMPLE}"
