"""Stores for the objects of a list or watch: the protocol, a list on its way, and the store of a single object.

`ObjectIndex` is the store for kinds whose names and labels are all that is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class NamedMetadata(Protocol):
    """Metadata that identifies an object within its kind."""

    @property
    def name(self) -> str:
        """Name of the object."""

    @property
    def namespace(self) -> str | None:
        """Namespace of the object; None if it is cluster-scoped."""


class KubernetesObject(Protocol):
    """Any object that a store can hold."""

    @property
    def metadata(self) -> NamedMetadata:
        """The metadata, which identifies the object."""


def object_key(item: KubernetesObject) -> tuple[str, str]:
    """Return the namespace, empty for kinds without namespaces, and the name."""
    return item.metadata.namespace or "", item.metadata.name


T = TypeVar("T", bound=KubernetesObject)
T_contra = TypeVar("T_contra", bound=KubernetesObject, contravariant=True)
C = TypeVar("C")


class Replacement(Protocol[T_contra]):
    """A new list that is collected in slices and then takes the place of everything in the store at once."""

    def put(self, item: T_contra) -> None:
        """Add an object."""

    def commit(self) -> None:
        """Replace the content of the store. The replacement must not be used again."""


class Store(Protocol[T_contra]):
    """Keeps the objects of one kind. One thread writes."""

    def __len__(self) -> int:
        """Return the number of objects."""

    def replacement(self) -> Replacement[T_contra]:
        """Return an empty list that replaces the content of the store when it is committed."""

    def put(self, item: T_contra) -> None:
        """Add an object, or update it."""

    def remove(self, namespace: str | None, name: str) -> None:
        """Delete an object; an unknown one is not an error."""


@dataclass(frozen=True, slots=True)
class CollectedList(Generic[C, T_contra]):
    """A replacement that adds objects to new content, which its commit hands to the store."""

    content: C
    add: Callable[[C, T_contra], object]
    take: Callable[[C], None]

    def put(self, item: T_contra) -> None:
        """Add an object."""
        self.add(self.content, item)

    def commit(self) -> None:
        """Replace the content of the store. The replacement must not be used again."""
        self.take(self.content)


class SingleObject(Generic[T]):
    """A store for one object, which passes on the object's content and does not keep it.

    Objects with other names are ignored, in case the server does not honor the field selector.
    """

    def __init__(self, name: str, changed: Callable[[T | None], None]) -> None:
        """Call `changed` after each list and each change, with None if there is no such object."""
        self._name = name
        self._changed = changed
        self._exists = False

    def __len__(self) -> int:
        """Return 1 if the object exists, otherwise 0."""
        return int(self._exists)

    def replacement(self) -> CollectedList[list[T], T]:
        """Return an empty list; its commit passes on the object, or None."""
        found: list[T] = []
        return CollectedList(found, self._add, lambda listed: self._take(listed[-1] if listed else None))

    def put(self, item: T) -> None:
        """Pass on the new content."""
        if item.metadata.name == self._name:
            self._take(item)

    def remove(self, namespace: str | None, name: str) -> None:  # noqa: ARG002 - as the protocol has it
        """Pass on that the object is gone."""
        if name == self._name:
            self._take(None)

    def _add(self, found: list[T], item: T) -> None:
        if item.metadata.name == self._name:
            found.append(item)

    def _take(self, item: T | None) -> None:
        self._exists = item is not None
        self._changed(item)
