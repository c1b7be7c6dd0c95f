"""The queries about Kubernetes objects that both a cluster and a folder of files can answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from adapter.foundation.objects.resources import Resource
    from adapter.foundation.objects.selectors import Selector


class ObjectsError(Exception):
    """The objects of a kind are not available. The message names the kind and the reason."""


class ObjectsNotSyncedError(ObjectsError):
    """The first list of this kind has not arrived yet."""


class ObjectsForbiddenError(ObjectsError):
    """The process lacks the permission to read this kind. The message names the permission."""


class ObjectsNotServedError(ObjectsError):
    """The cluster does not serve this kind, or no longer does."""


class ObjectSource(Protocol):
    """A source of objects, which answers queries for kinds, names and labels from memory."""

    def resource(self, group: str, name: str) -> Resource:
        """Return the resource of this name, as a `ResolveResource` does. Raises UnknownResourceError."""

    def names(self, resource: Resource, namespace: str | None, selector: Selector) -> Collection[str]:
        """Return the names of the objects in the namespace (None: cluster-scoped) whose labels match, in order.

        The first call for a kind other than pods starts its watch. Raises ObjectsError.
        """

    def labels_of(self, resource: Resource, namespace: str | None, name: str) -> Mapping[str, str] | None:
        """Return the labels of one object, which must not be changed; None if there is no such object.

        The first call for a kind other than pods starts its watch. Raises ObjectsError.
        """

    def namespaces_of(self, resource: Resource) -> Collection[str]:
        """Return the namespaces with objects of the kind. Raises ObjectsError."""

    def is_synced(self, resource: Resource) -> bool:
        """Return whether the first list of the kind is complete; False for a kind that is not watched. Never raises."""

    def await_first_list(self, resource: Resource, seconds: float) -> None:
        """Wait at most this long until the first list of a watched kind is complete or has failed. Never raises."""

    def unreadable(self, resource: Resource, namespace: str | None) -> int:
        """Return how many objects of the namespace (None: of all) cannot be read and are left out. Never raises."""
