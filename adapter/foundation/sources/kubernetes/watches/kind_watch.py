"""The metadata of all objects of one kind, watched in whichever version the cluster serves.

Rules and requests name the version that was preferred when they were read. An upgrade of a CustomResourceDefinition may
end that version, while the objects stay: their names and labels are the same in each version.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from adapter.foundation.objects.metadata import PartialObjectMetadata
from adapter.foundation.sources.kubernetes.errors import KubernetesError, NotFoundError
from adapter.foundation.sources.kubernetes.lists.list_watch import ListWatch, WatchSettings
from adapter.foundation.sources.kubernetes.watches.reflector import Reflector
from adapter.foundation.sources.kubernetes.watches.streams import when_set
from adapter.foundation.sources.object_index import ObjectIndex

if TYPE_CHECKING:
    from threading import Event

    from adapter.foundation.objects.resources import Resource
    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from adapter.foundation.sources.kubernetes.discovery import KindDiscovery


class KindWatch:
    """Keeps the names and labels of one kind. `run` is for one thread, everything else for any."""

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
                self.reflector = self._reflector_of(self._discovery.served(self.reflector.resource))

    def _reflector_of(self, resource: Resource) -> Reflector[PartialObjectMetadata]:
        which = ListWatch(resource)
        return Reflector(self._client, which, PartialObjectMetadata, self.objects, self._settings, self._follow_version)

    def _follow_version(self, error: KubernetesError) -> None:
        """End the reflector if its version was not found, and the server now has the kind in another one."""
        resource = self.reflector.resource
        if isinstance(error, NotFoundError) and self._discovery.served(resource, ask=True).version != resource.version:
            self._ended.set()
