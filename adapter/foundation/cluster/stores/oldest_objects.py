"""Values of the oldest objects of each namespace, and only the identity of younger ones.

A namespace may have far more objects than its quota allows. Objects beyond the quota take a few hundred bytes each,
whatever they contain, and a change of one costs the same whether the namespace has ten objects or 20,000. The store
also knows which of them have a status that does not say yet that they are beyond the quota.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import Generic, TypeAlias, TypeVar

V = TypeVar("V")

Key: TypeAlias = "tuple[str, str]"
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class ObjectIdentity:
    """Values that identify an object and one version of its spec, and its age."""

    namespace: str
    name: str
    uid: str
    generation: int
    created: str
    """The time of creation in RFC 3339 and UTC, which sorts as text."""

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return self.namespace, self.name

    @property
    def age(self) -> tuple[str, str]:
        """A key that sorts the objects of a namespace, the oldest first."""
        return self.created, self.name


class OldestObjects(Generic[V]):
    """The objects of all namespaces. Not thread-safe."""

    def __init__(self, most: int, *, is_list: bool = False) -> None:
        """Keep the values of at most this number of objects of each namespace.

        With `is_list`, the objects are those of one list, in any order, until `end_list` is called.
        """
        self.most = most
        self._is_list = is_list
        self._reported_within: set[Key] = set()
        """Objects within the limit so far whose statuses say otherwise, while a list arrives."""
        self._identities: dict[Key, ObjectIdentity] = {}
        self._ages: dict[str, list[tuple[str, str]]] = {}
        """The ages of all objects of a namespace, the oldest first."""
        self._values: dict[Key, V] = {}
        self._absent: set[Key] = set()
        self._unreported: dict[str, dict[str, None]] = {}
        """Names, by namespace, in their order of arrival."""

    def __len__(self) -> int:
        """Return the number of all objects."""
        return len(self._identities)

    @property
    def values(self) -> Mapping[Key, V]:
        """The known values of the objects within the limit. Callers must not keep the mapping."""
        return self._values

    @property
    def absent(self) -> frozenset[Key]:
        """Objects that came within the limit only after they were seen, so their values have to be fetched."""
        return frozenset(self._absent)

    @property
    def number_beyond(self) -> int:
        """The number of objects beyond the limit."""
        return len(self._identities) - len(self._values) - len(self._absent)

    @property
    def unreported(self) -> frozenset[str]:
        """Namespaces with objects beyond the limit whose statuses do not say so yet."""
        return frozenset(self._unreported)

    def put(self, identity: ObjectIdentity, value: V, *, is_reported: bool) -> None:
        """Add an object, or update it; `is_reported` is whether its status states that it is beyond the limit.

        A status that another client changes afterwards is left alone until the spec changes.
        """
        key, before = identity.key, self._identities.get(identity.key)
        if before is not None and before.age != identity.age:
            self.remove(key)
            before = None
        self._identities[key] = identity
        if before is None:
            self._enter(identity)
        if self._is_within(identity):
            self._absent.discard(key)
            self._values[key] = value
            if is_reported and self._is_list:
                self._reported_within.add(key)
            return
        if is_reported:
            self.mark_reported(key)
        elif before is None or (before.uid, before.generation) != (identity.uid, identity.generation):
            self._add_unreported(key)

    def end_list(self) -> None:
        """Note that all objects of a list have been added: from now on, `put` may push an object beyond the limit."""
        self._is_list = False
        self._reported_within.clear()

    def restore(self, identity: ObjectIdentity, value: V) -> None:
        """Add the value of an object of `absent`, unless the object was deleted or its value arrived meanwhile."""
        known = self._identities.get(identity.key)
        if identity.key in self._absent and known is not None and known.uid == identity.uid:
            self.put(identity, value, is_reported=False)

    def remove(self, key: Key) -> bool:
        """Forget an object; return whether it was known."""
        identity = self._identities.pop(key, None)
        if identity is None:
            return False
        ages = self._ages[identity.namespace]
        place = bisect_left(ages, identity.age)
        del ages[place]
        if not ages:
            del self._ages[identity.namespace]
        self._values.pop(key, None)
        self._absent.discard(key)
        self.mark_reported(key)
        if place < self.most <= len(ages):
            self._come_within((identity.namespace, ages[self.most - 1][1]))
        return True

    def limit(self, most: int) -> None:
        """Change the limit of each namespace."""
        if most == self.most:
            return
        self.most = most
        for namespace, ages in self._ages.items():
            for place, (_, name) in enumerate(ages):
                key = namespace, name
                is_known = key in self._values or key in self._absent
                if place < most and not is_known:
                    self._come_within(key)
                elif place >= most and is_known:
                    self._fall_beyond(key)

    def take_unreported(self, namespace: str, most: int) -> list[ObjectIdentity]:
        """Return, and mark as reported, at most `most` objects beyond the limit whose statuses do not say so."""
        names = [*islice(self._unreported.get(namespace, ()), most)]
        for name in names:
            self.mark_reported((namespace, name))
        return [self._identities[namespace, name] for name in names]

    def mark_reported(self, key: Key) -> None:
        """Note that the status of an object need not be written any more."""
        names = self._unreported.get(key[0])
        if names is not None:
            names.pop(key[1], None)
            if not names:
                del self._unreported[key[0]]

    def report_again(self, key: Key) -> None:
        """Note that the status of an object could not be written."""
        identity = self._identities.get(key)
        if identity is not None and not self._is_within(identity):
            self._add_unreported(key)

    def _is_within(self, identity: ObjectIdentity) -> bool:
        return bisect_left(self._ages[identity.namespace], identity.age) < self.most

    def _enter(self, identity: ObjectIdentity) -> None:
        ages = self._ages.setdefault(identity.namespace, [])
        insort(ages, identity.age)
        if len(ages) > self.most and bisect_left(ages, identity.age) < self.most:
            self._fall_beyond((identity.namespace, ages[self.most][1]))

    def _come_within(self, key: Key) -> None:
        self.mark_reported(key)
        self._absent.add(key)

    def _fall_beyond(self, key: Key) -> None:
        self._absent.discard(key)
        self._values.pop(key, None)
        if key not in self._reported_within:
            self._add_unreported(key)

    def _add_unreported(self, key: Key) -> None:
        self._unreported.setdefault(key[0], {})[key[1]] = None


def in_turns(items: Iterable[V], namespace: Callable[[V], str]) -> list[V]:
    """Return items ordered so that each namespace has its first item before any has its second."""
    numbers: Counter[str] = Counter()
    turns = []
    for item in items:
        turns.append((numbers[namespace(item)], item))
        numbers[namespace(item)] += 1
    return [item for _, item in sorted(turns, key=itemgetter(0))]
