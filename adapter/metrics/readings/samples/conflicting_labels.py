"""Finds the labels that differ between samples that claim to be the value of the same object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from adapter.metrics.readings.samples.object_reading import Fault


@dataclass(slots=True)
class _Compared:
    """The samples of one object that were compared so far."""

    first: Mapping[str, str] | None = None
    differing: frozenset[str] = frozenset()


class Rivals:
    """Objects for which several samples claim to be the value, each as namespace and name. Not thread-safe."""

    def __init__(self) -> None:
        self._compared: dict[tuple[str, str], _Compared] = {}
        self._faults: dict[frozenset[str], Fault] = {}

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._compared)

    def __len__(self) -> int:
        return len(self._compared)

    def __contains__(self, place: tuple[str, str]) -> bool:
        return place in self._compared

    def enter(self, place: tuple[str, str]) -> Fault:
        """Add an object; return why it has no value, as long as none of its samples were compared."""
        self._compared.setdefault(place, _Compared())
        return self._fault_of(frozenset())

    def discard(self, place: tuple[str, str]) -> None:
        """Forget an object; do nothing if it is unknown."""
        self._compared.pop(place, None)

    def compare(self, place: tuple[str, str], labels: Mapping[str, str]) -> Fault:
        """Compare one more sample of an object with its first; return why the object has no value then."""
        compared = self._compared[place]
        first = compared.first
        if first is None:
            compared.first = labels
        else:
            compared.differing |= {one for one in first.keys() | labels.keys() if first.get(one) != labels.get(one)}
        return self._fault_of(compared.differing)

    def _fault_of(self, differing: frozenset[str]) -> Fault:
        fault = self._faults.get(differing)
        if fault is None:
            fault = self._faults[differing] = Fault.of_several(
                f"several samples claim to be its value; they differ in {', '.join(sorted(differing)) or 'no label'}: "
                "aggregate these labels away in the rule's metricsQuery, or select one of their values"
            )
        return fault
