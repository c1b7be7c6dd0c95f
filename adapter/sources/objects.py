"""What the rest of the house asks about Kubernetes objects, whether they come from a cluster or from files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from adapter.objects.resources import Resource
    from adapter.objects.selectors import Selector


class ObjectsError(Exception):
    """Objects cannot be told now; the message says which kind and why."""


class ObjectsNotSyncedError(ObjectsError):
    """The first list of this kind has not arrived yet."""


class ObjectsForbiddenError(ObjectsError):
    """This kind may not be read with the rights the process has; the message names the permission that is missing."""


class ObjectsNotServedError(ObjectsError):
    """The cluster does not have this kind, or no longer."""


class ObjectSource(Protocol):
    """Kinds and names of objects, answered from memory."""

    def resource(self, group: str, name: str) -> Resource:
        """Return the resource of this name; raises UnknownResourceError. Is a `ResolveResource`."""
        ...

    def names(self, resource: Resource, namespace: str | None, selector: Selector) -> Collection[str]:
        """Names of the objects in the namespace (None: root-scoped) whose labels match, in ascending order.

        The first call for a kind other than pods starts its watch. Raises ObjectsError.
        """
        ...

    def labels_of(self, resource: Resource, namespace: str | None, name: str) -> Mapping[str, str] | None:
        """Labels of one object, not to be changed; None if there is no such object.

        The first call for a kind other than pods starts its watch. Raises ObjectsError.
        """
        ...

    def namespaces_of(self, resource: Resource) -> Collection[str]:
        """Namespaces that hold an object of the kind. Raises ObjectsError."""
        ...

    def synced(self, resource: Resource) -> bool:
        """Whether the first list of the kind stands (never raises; False for a kind that is not watched)."""
        ...

    def await_first_list(self, resource: Resource, seconds: float) -> None:
        """Wait until the first list of a kind that is watched stands or has failed, at most so long (never raises)."""
        ...
