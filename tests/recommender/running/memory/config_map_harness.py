"""Memories in ConfigMaps of an API server in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.foundation.sources.kubernetes.errors import DeadlineError, KubernetesError, UnknownOutcomeError
from adapter.foundation.sources.kubernetes.writing import Fence
from adapter.foundation.time.clock import Clock
from recommender.decisions.memory import LastValue, Memory
from recommender.kinds.proportional.memory import ProportionalMemory
from recommender.running.memory.config_map_store import ConfigMapMemoryStore
from recommender.running.memory.store_protocol import stored_name
from tests.support.apiserver_kinds import CONFIG_MAPS
from tests.support.apiserver_objects import Direct, ObjectStore

if TYPE_CHECKING:
    from collections.abc import Mapping

FIRST = Memory(last=LastValue(3, 1.0, 2.0), own=ProportionalMemory(rungs={"nodes": 3}))
SECOND = replace(FIRST, changes=(1.0,))
THIRD = replace(FIRST, changes=(1.0, 2.0))


class Harness:
    """An API server, and any number of processes that store memories there."""

    def __init__(self) -> None:
        self.now = 0.0
        self.objects = ObjectStore()
        self.calls: list[str] = []
        self.results: list[str] = []
        self.fail_before: dict[str, KubernetesError] = {}
        self.refused = ""

    def process(self, *, permits: bool = True) -> ConfigMapMemoryStore:
        return ConfigMapMemoryStore(
            Losing(self.objects, self._before),
            "monitoring",
            Fence(2.0, lambda _: permits),
            count=self.results.append,
            clock=Clock(lambda: self.now),
        )

    def refuse(self, path: str) -> None:
        if self.refused and path.endswith(self.refused):
            raise DeadlineError("no answer")

    def _before(self, method: str, _path: str) -> None:
        self.calls.append(method)
        error = self.fail_before.pop(method, None)
        if error is not None:
            raise error

    @property
    def writes(self) -> int:
        return sum(method != "GET" for method in self.calls)

    def content(self, name: str = "web") -> str | None:
        found = self.objects.find(CONFIG_MAPS, "monitoring", stored_name(name))
        return None if found is None else found["data"]["memory.json"]

    def stored(self, name: str = "web") -> Memory | None:
        found = self.process().load(name)
        return None if found is None else found.memory


class Losing(Direct):
    """An object store that loses the answer to a write that is done, if the test says so."""

    lose_next = False

    def replace(self, path: str, document: Mapping[str, object], fence: Fence) -> dict[str, object]:
        after = super().replace(path, document, fence)
        if self.lose_next:
            self.lose_next = False
            raise UnknownOutcomeError("PUT: sent, but no answer")
        return after
