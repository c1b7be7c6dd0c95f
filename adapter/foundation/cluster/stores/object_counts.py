"""Counts of objects and of ready addresses by namespace, and stores that keep no more than counting needs.

One thread writes to a store, and any thread asks for its counts.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from adapter.foundation.cluster.facts.objects import ready_addresses, service_of
from adapter.foundation.sources.stores import CollectedList

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from adapter.foundation.cluster.forms.objects import NameForm, SliceForm


class Counts:
    """Numbers by namespace, and their sum if no namespace is given. Thread-safe."""

    def __init__(self, changed: Callable[[], None]) -> None:
        """Call `changed` after each change of a number."""
        self._changed = changed
        self._lock = threading.Lock()
        self._by_namespace: dict[str, int] = {}
        self._total = 0

    def count(self, namespace: str = "") -> int:
        """Return the number for a namespace, or for all namespaces together if `namespace` is empty."""
        with self._lock:
            return self._by_namespace.get(namespace, 0) if namespace else self._total

    def add(self, namespace: str, number: int) -> None:
        """Add to the number of a namespace."""
        if not number:
            return
        with self._lock:
            now = self._by_namespace.get(namespace, 0) + number
            if now:
                self._by_namespace[namespace] = now
            else:
                del self._by_namespace[namespace]
            self._total += number
        self._changed()

    def replace(self, by_namespace: dict[str, int]) -> None:
        """Replace all numbers."""
        with self._lock:
            same = by_namespace == self._by_namespace
            self._by_namespace, self._total = by_namespace, sum(by_namespace.values())
        if not same:
            self._changed()


class NameStore:
    """A store that keeps the names of objects and nothing else."""

    def __init__(self, changed: Callable[[], None]) -> None:
        """Call `changed` whenever a count changes."""
        self._counts = Counts(changed)
        self._names: dict[str, set[str]] = {}

    def __len__(self) -> int:
        """Return the number of objects."""
        return self._counts.count()

    def count(self, namespace: str) -> int:
        """Return the number of objects in a namespace, or in all namespaces if `namespace` is empty."""
        return self._counts.count(namespace)

    def replacement(self) -> CollectedList[dict[str, set[str]], NameForm]:
        """Return an empty list; its commit replaces all names."""
        return CollectedList({}, _add_name, self._replace)

    def put(self, item: NameForm) -> None:
        """Add an object; adding a known one changes nothing."""
        namespace = item.metadata.namespace or ""
        names = self._names.setdefault(namespace, set())
        if item.metadata.name not in names:
            names.add(item.metadata.name)
            self._counts.add(namespace, 1)

    def remove(self, namespace: str | None, name: str) -> None:
        """Delete an object; an unknown one is not an error."""
        names = self._names.get(namespace or "", set())
        if name in names:
            names.remove(name)
            if not names:
                del self._names[namespace or ""]
            self._counts.add(namespace or "", -1)

    def _replace(self, names: dict[str, set[str]]) -> None:
        self._names = names
        self._counts.replace({namespace: len(found) for namespace, found in names.items()})


def _add_name(names: dict[str, set[str]], item: NameForm) -> None:
    names.setdefault(item.metadata.namespace or "", set()).add(item.metadata.name)


class AddressStore:
    """A store of EndpointSlices that counts ready addresses, each address of a Service once.

    During a change of a Service an address may be in two of its slices.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        """Call `changed` whenever a count changes."""
        self._counts = Counts(changed)
        self._services = _Services()

    def __len__(self) -> int:
        """Return the number of slices."""
        return len(self._services)

    def count(self, namespace: str) -> int:
        """Return the number of ready addresses in a namespace, or in all namespaces if `namespace` is empty."""
        return self._counts.count(namespace)

    def replacement(self) -> CollectedList[_Services, SliceForm]:
        """Return an empty list; its commit replaces all slices."""
        return CollectedList(_Services(), _Services.put, self._replace)

    def put(self, item: SliceForm) -> None:
        """Add a slice, or update it."""
        self._counts.add(item.metadata.namespace or "", self._services.put(item))

    def remove(self, namespace: str | None, name: str) -> None:
        """Delete a slice; an unknown one is not an error."""
        self._counts.add(namespace or "", self._services.remove(namespace or "", name))

    def _replace(self, services: _Services) -> None:
        self._services = services
        self._counts.replace(services.by_namespace())


class _Services:
    """The ready addresses of Services, slice by slice."""

    def __init__(self) -> None:
        self._service: dict[tuple[str, str], str] = {}
        """The Service of each slice, by namespace and name of the slice."""
        self._addresses: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {}
        """The ready addresses, by namespace and name of the Service, and then by name of the slice."""

    def __len__(self) -> int:
        return len(self._service)

    def put(self, item: SliceForm) -> int:
        """Add a slice, or update it; return the change in the number of its namespace's addresses."""
        namespace, name, service = item.metadata.namespace or "", item.metadata.name, service_of(item)
        change = self.remove(namespace, name) if self._service.get((namespace, name), service) != service else 0
        self._service[namespace, name] = service
        slices = self._addresses.setdefault((namespace, service), {})
        before = distinct(slices.values())
        slices[name] = ready_addresses(item)
        return change + distinct(slices.values()) - before

    def remove(self, namespace: str, name: str) -> int:
        """Delete a slice; return the change in the number of its namespace's addresses."""
        service = self._service.pop((namespace, name), None)
        if service is None:
            return 0
        slices = self._addresses[namespace, service]
        before = distinct(slices.values())
        del slices[name]
        if not slices:
            del self._addresses[namespace, service]
        return distinct(slices.values()) - before

    def by_namespace(self) -> dict[str, int]:
        """Return the number of addresses of each namespace that has any."""
        counts: dict[str, int] = {}
        for (namespace, _), slices in self._addresses.items():
            if number := distinct(slices.values()):
                counts[namespace] = counts.get(namespace, 0) + number
        return counts


def distinct(addresses: Iterable[Iterable[str]]) -> int:
    """Return how many different addresses there are."""
    return len(set().union(*addresses))
