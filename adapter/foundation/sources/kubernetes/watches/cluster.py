"""Objects of a cluster, kept in memory by watches: pods from the start, other kinds once they are requested."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from adapter.foundation.objects.metadata import PartialObjectMetadata
from adapter.foundation.objects.resources import BUILT_IN, Resource, find_resource
from adapter.foundation.sources.kubernetes.discovery import KindDiscovery
from adapter.foundation.sources.kubernetes.errors import ForbiddenError, KubernetesError, NotFoundError
from adapter.foundation.sources.kubernetes.lists.list_watch import ListWatch, WatchSettings
from adapter.foundation.sources.kubernetes.watches.reflector import Reflector
from adapter.foundation.sources.kubernetes.watches.streams import when_set
from adapter.foundation.sources.object_index import ObjectIndex
from adapter.foundation.sources.objects import ObjectsForbiddenError, ObjectsNotServedError, ObjectsNotSyncedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from threading import Event

    from adapter.foundation.objects.selectors import Selector
    from adapter.foundation.sources.kubernetes.client import KubernetesClient

StartTask: TypeAlias = "Callable[[str, Callable[[Event], None]], None]"
"""Starts a function, which runs until its event is set, as a named task of the process. Thread-safe.

Raises RuntimeError if no thread can be started.
"""

PODS = find_resource(BUILT_IN, "", "pods")


class KindWatch:
    """Keeps the names and labels of one kind, in whichever version the cluster serves.

    Rules and requests name the version that was preferred when they were read. An upgrade of a CustomResourceDefinition
    may end that version, while the objects stay: their names and labels are the same in each version. `run` is for one
    thread, everything else for any.
    """

    def __init__(
        self, client: KubernetesClient, discovery: KindDiscovery, resource: Resource, settings: WatchSettings
    ) -> None:
        """Begin with the version of `resource`."""
        self._client = client
        self._discovery = discovery
        self._settings = settings
        self._ended = threading.Event()
        """Set when the version of `reflector` is no longer served and another one is."""
        self.objects = ObjectIndex()
        self.reflector = self._reflector_of(resource)
        """The reflector of the version that is watched now."""

    def run(self, stop: Event) -> None:
        """Watch until `stop` is set; change to another version if the current one is no longer served."""
        while not stop.is_set():
            with when_set(stop, self._ended.set):
                self.reflector.run(self._ended)
            if not stop.is_set():
                self._ended = threading.Event()
                self.reflector = self._reflector_of(self._discovery.preferred_version(self.reflector.resource))

    def _reflector_of(self, resource: Resource) -> Reflector[PartialObjectMetadata]:
        which = ListWatch(resource)
        return Reflector(self._client, which, PartialObjectMetadata, self.objects, self._settings, self._follow_version)

    def _follow_version(self, error: KubernetesError) -> None:
        """End the reflector if its version was not found, and the server now has the kind in another one."""
        resource = self.reflector.resource
        if (
            isinstance(error, NotFoundError)
            and self._discovery.preferred_version(resource, ask=True).version != resource.version
        ):
            self._ended.set()


class ClusterObjects:
    """An `ObjectSource` for a cluster. Thread-safe."""

    def __init__(self, client: KubernetesClient, start: StartTask, settings: WatchSettings | None = None) -> None:
        """Start the tasks `discovery` and `watch pods`; each further kind gets a `watch` task when it is needed."""
        self._client = client
        self._start = start
        self._settings = settings or WatchSettings()
        self._discovery = KindDiscovery(client, pace=self._settings.pace, clock=self._settings.clock)
        self._watched: dict[str, KindWatch] = {}
        """The watches by `Resource.qualified`: each kind has one, whichever version is requested."""
        self._lock = threading.Lock()
        start("discovery", self._discovery.run)
        self._watch(PODS)

    def resource(self, group: str, name: str) -> Resource:
        """Return the resource of this name, as a `ResolveResource` does. Raises UnknownResourceError."""
        return self._discovery.resource(group, name)

    def names(self, resource: Resource, namespace: str | None, selector: Selector) -> tuple[str, ...]:
        """Return the names of the objects in the namespace (None: cluster-scoped) whose labels match, in order.

        The first call for a kind starts its watch. Raises ObjectsError.
        """
        return self._index(resource).names(namespace, selector)

    def labels_of(self, resource: Resource, namespace: str | None, name: str) -> Mapping[str, str] | None:
        """Return the labels of one object; None if there is no such object. Raises ObjectsError.

        The first call for a kind starts its watch.
        """
        return self._index(resource).labels(namespace, name)

    def namespaces_of(self, resource: Resource) -> tuple[str, ...]:
        """Return the namespaces with objects of the kind. The first call starts its watch. Raises ObjectsError."""
        return self._index(resource).namespaces()

    def is_synced(self, resource: Resource) -> bool:
        """Return whether the first list of the kind is complete; False for a kind that is not watched. Never raises."""
        watched = self._watched.get(resource.qualified)
        return watched is not None and watched.reflector.synced

    def await_first_list(self, resource: Resource, seconds: float) -> None:
        """Wait until the first list of the kind is complete or has failed, for at most this many seconds.

        With `retries_first_list`, only a refusal counts as a failure.
        """
        watched = self._watched.get(resource.qualified)
        if watched is not None:
            watched.reflector.tried.wait(seconds)

    def unreadable(self, resource: Resource, namespace: str | None) -> int:
        """Return how many objects of the namespace (None: of all) cannot be read and are left out. Never raises."""
        watched = self._watched.get(resource.qualified)
        return 0 if watched is None else watched.reflector.unreadable(namespace)

    def _index(self, resource: Resource) -> ObjectIndex:
        watched = self._watched.get(resource.qualified) or self._watch(resource)
        reflector = watched.reflector
        # Objects that may no longer be read become outdated, so they are no longer served.
        if (refusal := reflector.refusal) is not None:
            _refuse(reflector.resource, refusal)
        if not reflector.synced:
            reason = f": {reflector.failure}" if reflector.failure else ""
            raise ObjectsNotSyncedError(f"{resource.qualified}: the first list has not arrived yet{reason}")
        return watched.objects

    def _watch(self, resource: Resource) -> KindWatch:
        """Return the watch of the kind; create and start it if there is none.

        Raises ObjectsNotSyncedError if no thread can be started.
        """
        with self._lock:
            found = self._watched.get(resource.qualified)
            if found is not None:
                return found
            watched = KindWatch(self._client, self._discovery, resource, self._settings)
            try:
                self._start(f"watch {resource.qualified}", watched.run)
            except RuntimeError as error:
                # There are no threads left. The next call tries again.
                raise ObjectsNotSyncedError(f"{resource.qualified}: they cannot be watched: {error}") from error
            self._watched[resource.qualified] = watched
        return watched


def _refuse(resource: Resource, failure: ForbiddenError | NotFoundError) -> NoReturn:
    group = f"the API group {resource.group}" if resource.group else "the core group"
    if isinstance(failure, ForbiddenError):
        needed = f"needs list and watch on {resource.plural} in {group}"
        raise ObjectsForbiddenError(f"{resource.qualified}: {needed}: {failure}") from failure
    served = f"{resource.plural} in version {resource.version} of {group}"
    raise ObjectsNotServedError(f"{resource.qualified}: the API server does not serve {served}") from failure
