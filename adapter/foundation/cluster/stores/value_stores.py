"""Stores for the values of objects: nodes and HPAs.

One thread writes to a store, and any thread asks for its snapshot, an immutable value. A store calls `changed` only if
its snapshot changes: a heartbeat of a node is not a change.
"""

from __future__ import annotations

import threading
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from adapter.foundation.cluster.facts.autoscalers import autoscaler_of
from adapter.foundation.cluster.facts.objects import FactError, node_of
from adapter.foundation.cluster.facts.pod_selectors import pod_selector_of, selector_place
from adapter.foundation.sources.stores import KubernetesObject, object_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from adapter.foundation.cluster.forms.autoscalers import AutoscalerForm
    from adapter.foundation.cluster.forms.objects import NodeForm
    from adapter.foundation.cluster.forms.pods import SelectingForm
    from adapter.foundation.cluster.values.state import Autoscaler, ClusterNode, PodSelector

F = TypeVar("F", bound=KubernetesObject)
V = TypeVar("V")

_Key = tuple[str, str]
"""Namespace (empty for kinds without namespaces) and name."""


class ValueStore(Generic[F, V]):
    """A store of values that are made from objects. Objects that cannot be converted are kept as problems."""

    def __init__(
        self, convert: Callable[[F], V | None], order: Callable[[V], str], changed: Callable[[], None]
    ) -> None:
        """`convert` raises FactError, or returns None for an object that does not count.

        `order` is the key by which snapshots are sorted.
        """
        self._convert = convert
        self._order = order
        self._changed = changed
        self._lock = threading.Lock()
        self._values: dict[_Key, V] = {}
        self._problems: dict[_Key, str] = {}
        self._snapshot: tuple[V, ...] | None = ()

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self._values)

    @property
    def snapshot(self) -> tuple[V, ...]:
        """All values in the order of the store."""
        with self._lock:
            if self._snapshot is None:
                self._snapshot = tuple(sorted(self._values.values(), key=self._order))
            return self._snapshot

    @property
    def problems(self) -> tuple[str, ...]:
        """Why objects are left out, one sentence each."""
        with self._lock:
            return tuple(self._problems.values())

    @property
    def known(self) -> Mapping[_Key, V]:
        """All values, by namespace (empty for kinds without namespaces) and name."""
        with self._lock:
            return dict(self._values)

    @property
    def refused(self) -> Mapping[_Key, str]:
        """Why objects are left out, by namespace (empty for kinds without namespaces) and name."""
        with self._lock:
            return dict(self._problems)

    def replacement(self) -> ValueReplacement[F, V]:
        """Return an empty list; its commit replaces all values."""
        return ValueReplacement(self)

    def put(self, item: F) -> None:
        """Add an object, or update it."""
        key = object_key(item)
        try:
            value = self._convert(item)
        except FactError as error:
            self._refuse(key, str(error))
            return
        if value is None:
            self.remove(*key)
            return
        with self._lock:
            mended = self._problems.pop(key, None) is not None
            if not mended and self._values.get(key) == value:
                return
            self._values[key] = value
            self._snapshot = None
        self._changed()

    def remove(self, namespace: str | None, name: str) -> None:
        """Delete an object; an unknown one is not an error."""
        key = (namespace or "", name)
        with self._lock:
            known = self._values.pop(key, None) is not None
            refused = self._problems.pop(key, None) is not None
            if known:
                self._snapshot = None
        if known or refused:
            self._changed()

    def convert(self, item: F) -> tuple[_Key, V | None, str]:
        """Return the key of a listed object, its value (the known one if equal; None if unusable), and any problem."""
        key = object_key(item)
        try:
            value = self._convert(item)
        except FactError as error:
            return key, None, str(error)
        known = self._values.get(key)
        return key, known if known == value else value, ""

    def replace(self, values: dict[_Key, V], problems: dict[_Key, str]) -> None:
        """Replace all values by those of a whole list."""
        with self._lock:
            same = problems == self._problems and values == self._values
            self._values, self._problems = values, problems
            if not same:
                self._snapshot = None
        if not same:
            self._changed()

    def _refuse(self, key: _Key, problem: str) -> None:
        with self._lock:
            same = self._problems.get(key) == problem
            self._problems[key] = problem
            # Its earlier state is no longer true.
            if self._values.pop(key, None) is not None:
                self._snapshot = None
        if not same:
            self._changed()


class ValueReplacement(Generic[F, V]):
    """A new list of values, which takes the place of all values of its store."""

    def __init__(self, store: ValueStore[F, V]) -> None:
        self._store = store
        self._values: dict[_Key, V] = {}
        self._problems: dict[_Key, str] = {}

    def put(self, item: F) -> None:
        """Add an object."""
        key, value, problem = self._store.convert(item)
        if problem:
            self._problems[key] = problem
        elif value is not None:
            self._values[key] = value

    def missing_keys(self) -> Iterable[_Key]:
        """Return namespace and name of each known value that the list lacks."""
        return [key for key in self._store.known if key not in self._values and key not in self._problems]

    def keep(self, keys: Iterable[_Key]) -> None:
        """Add known values as they are."""
        known = self._store.known
        self._values.update({key: known[key] for key in keys if key in known})

    def commit(self) -> None:
        """Replace the values of the store."""
        self._store.replace(self._values, self._problems)


def node_store(
    changed: Callable[[], None], convert: Callable[[Any], ClusterNode] = node_of
) -> ValueStore[NodeForm, ClusterNode]:
    """Return a store of nodes, ordered by name; `convert` may read more from a form with more fields."""
    return ValueStore(convert, attrgetter("name"), changed)


def autoscaler_store(changed: Callable[[], None]) -> ValueStore[AutoscalerForm, Autoscaler]:
    """Return a store of the HPAs of one namespace, ordered by name."""
    return ValueStore(autoscaler_of, attrgetter("name"), changed)


def selector_store(kind: str, changed: Callable[[], None]) -> ValueStore[SelectingForm, PodSelector]:
    """Return a store of the objects of a kind that selects pods, ordered by namespace and name."""
    return ValueStore(partial(pod_selector_of, kind), selector_place, changed)
