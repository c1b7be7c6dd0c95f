"""Objects of a custom kind that tenants create, break, delete and recreate, as fast as the stand-in accepts them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adapter.foundation.objects.resources import Resource
    from tests.support.object_apiserver import ObjectApiServer

TENANTS: Final = tuple(f"tenant-{number}" for number in range(5))
_OBJECTS_OF_EACH: Final = 40
_DELETED: Final = 0.3
"""The share of the changes after which the object is deleted."""


class TenantObjects:
    """The objects of one kind."""

    def __init__(self, server: ObjectApiServer, kind: Resource, specs: Sequence[Any]) -> None:
        """Let the server serve the kind; tenants choose from `specs`."""
        server.define(kind)
        self._server = server
        self._kind = kind
        self._specs = specs
        self._dice = random.Random(22)
        self._version = 0

    def put(self, namespace: str, name: str, spec: object) -> None:
        """Create or change an object; it gets another UID each time, as if it had been recreated."""
        self._version += 1
        metadata = {
            "name": name,
            "namespace": namespace,
            "uid": f"{namespace}-{name}-{self._version}",
            "generation": 1,
            "resourceVersion": str(self._server.store.version + 1),
            "creationTimestamp": "2026-01-01T00:00:00Z",
        }
        self._server.store.put(self._kind, namespace, name, {}, {"metadata": metadata, "spec": spec})

    def changed(self, times: int) -> Iterator[int]:
        """Change objects of tenants at random; yield the number of each change."""
        dice = self._dice
        for number in range(times):
            namespace, name = dice.choice(TENANTS), f"object-{dice.randrange(_OBJECTS_OF_EACH)}"
            self.put(namespace, name, dice.choice(self._specs))
            if dice.random() < _DELETED:
                self._server.store.remove(self._kind, namespace, name)
            yield number
