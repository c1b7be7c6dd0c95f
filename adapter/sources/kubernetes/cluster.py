"""Objects of a cluster, kept in memory by watch: pods from the start, other kinds from the first request for them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from adapter.objects.resources import BUILT_IN, find_resource
from adapter.sources.index import ObjectIndex
from adapter.sources.kubernetes.discovery import KindDiscovery
from adapter.sources.kubernetes.errors import ForbiddenError
from adapter.sources.kubernetes.reflector import Reflector
from adapter.sources.kubernetes.settings import WatchSettings
from adapter.sources.objects import ObjectsForbiddenError, ObjectsNotServedError, ObjectsNotSyncedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from threading import Event

    from adapter.objects.resources import Resource
    from adapter.objects.selectors import Selector
    from adapter.sources.kubernetes.client import KubernetesClient
    from adapter.sources.kubernetes.errors import NotFoundError

StartTask: TypeAlias = "Callable[[str, Callable[[Event], None]], None]"
"""Starts a function that runs until its event is set, as a named task of the process. Called from any thread."""

PODS = find_resource(BUILT_IN, "", "pods")


class ClusterObjects:
    """An `ObjectSource` over a cluster. Thread-safe."""

    def __init__(
        self,
        client: KubernetesClient,
        start: StartTask,
        settings: WatchSettings | None = None,
        discovery: KindDiscovery | None = None,
    ) -> None:
        """Start the tasks `discovery` and `watch pods`; each further kind that is asked for has a `watch` task too."""
        self._client = client
        self._start = start
        self._settings = settings or WatchSettings()
        self._discovery = discovery or KindDiscovery(client, pace=self._settings.pace)
        self._reflectors: dict[Resource, Reflector] = {}
        self._lock = threading.Lock()
        start("discovery", self._discovery.run)
        self._reflector(PODS)

    def resource(self, group: str, name: str) -> Resource:
        """Return the resource of this name; raises UnknownResourceError. Is a `ResolveResource`."""
        return self._discovery.resource(group, name)

    def names(self, resource: Resource, namespace: str | None, selector: Selector) -> tuple[str, ...]:
        """Names of the objects in the namespace (None: root-scoped) whose labels match, in ascending order.

        Starts the watch of the kind when it is the first to ask. Raises ObjectsError.
        """
        return self._index(resource).names(namespace, selector)

    def labels_of(self, resource: Resource, namespace: str | None, name: str) -> Mapping[str, str] | None:
        """Labels of one object; None if there is no such object. Starts the watch likewise. Raises ObjectsError."""
        return self._index(resource).labels(namespace, name)

    def namespaces_of(self, resource: Resource) -> tuple[str, ...]:
        """Namespaces that hold an object of the kind. Starts the watch likewise. Raises ObjectsError."""
        return self._index(resource).namespaces()

    def synced(self, resource: Resource) -> bool:
        """Whether the first list of the kind stands (never raises; False for a kind that is not watched)."""
        reflector = self._reflectors.get(resource)
        return reflector is not None and reflector.synced

    def await_first_list(self, resource: Resource, seconds: float) -> None:
        """Wait until the first list of the kind stands or has failed, at most so long."""
        reflector = self._reflectors.get(resource)
        if reflector is not None:
            reflector.tried.wait(seconds)

    def _index(self, resource: Resource) -> ObjectIndex:
        reflector = self._reflectors.get(resource) or self._reflector(resource)
        # What may no longer be read can no longer be kept true, so it is not told either.
        if (refusal := reflector.refusal) is not None:
            _refuse(reflector.resource, refusal)
        if not reflector.synced:
            reason = f": {reflector.failure}" if reflector.failure else ""
            raise ObjectsNotSyncedError(f"{resource.qualified}: the first list has not arrived yet{reason}")
        return reflector.index

    def _reflector(self, resource: Resource) -> Reflector:
        """Return the reflector of the kind; make and start it if there is none."""
        with self._lock:
            found = self._reflectors.get(resource)
            if found is not None:
                return found
            made = self._reflectors[resource] = Reflector(self._client, resource, ObjectIndex(), self._settings)
        self._start(f"watch {resource.qualified}", made.run)
        return made


def _refuse(resource: Resource, failure: ForbiddenError | NotFoundError) -> NoReturn:
    group = f"the API group {resource.group}" if resource.group else "the core group"
    if isinstance(failure, ForbiddenError):
        needed = f"needs get, list, watch on {resource.plural} in {group}"
        raise ObjectsForbiddenError(f"{resource.qualified}: {needed}: {failure}") from failure
    served = f"{resource.plural} in version {resource.version} of {group}"
    raise ObjectsNotServedError(f"{resource.qualified}: the API server does not serve {served}") from failure
