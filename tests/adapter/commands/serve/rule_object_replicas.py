"""Processes that read MetricRule objects, and a server that keeps their statuses."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import msgspec

from adapter.commands.serve.rule_object_statuses import RuleObjectStatuses
from adapter.commands.serve.rule_object_store import (
    RuleObjectChanges,
    RuleObjectForm,
    RuleObjectMeta,
    RuleObjectStore,
    rule_object_store,
)
from adapter.commands.serve.rule_objects import RuleObjectLoader
from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.sources.kubernetes.errors import ConflictError, KubernetesError
from adapter.foundation.time.pace import UNPACED
from tests.support.readings import FakeClock, ScriptedPrometheus, make_harness
from tests.support.rule_objects import QUEUE

if TYPE_CHECKING:
    from adapter.foundation.sources.kubernetes.writing import ObjectClient


def form(name: str, spec: object = QUEUE, *, generation: int = 1, status: Any = None, uid: str = "") -> RuleObjectForm:  # noqa: ANN401
    namespace, _, own = name.partition("/")
    metadata = RuleObjectMeta(
        own, namespace, uid=uid or f"uid-{name}", generation=generation, created="2026-01-01T00:00:00Z"
    )
    return RuleObjectForm(metadata, spec, status)


@dataclass
class Server:
    """A server that accepts statuses as the API server does, and sends them to the watches of its replicas."""

    stores: list[RuleObjectStore] = field(default_factory=list)
    statuses: dict[str, dict[str, Any]] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Objects whose status could not be written, once for each attempt."""
    failure: KubernetesError | None = None
    fails: str = ""
    """Beginning of the namespace, or of namespace and name, of objects to which `failure` applies; empty: to all."""
    forms: dict[str, RuleObjectForm] = field(default_factory=dict)

    def apply(self, path: str, document: dict[str, Any], manager: str) -> dict[str, Any]:
        assert manager == "tidewatch-adapter"
        key = "{namespace}/{name}".format(**document["metadata"])
        if self.failure is not None and key.startswith(self.fails):
            self.refused.append(key)
            raise self.failure
        assert path.endswith(f"/namespaces/{key.replace('/', '/metricrules/')}/status")
        seen = document["metadata"].get("resourceVersion", "")
        if seen and seen != self.forms[key].metadata.resource_version:
            raise ConflictError("the object has been modified", 409)
        self.written.append(key)
        if self.statuses.get(key) != document["status"]:
            self.statuses[key] = document["status"]
            self.put(self.forms[key])
        return {}

    def put(self, item: RuleObjectForm) -> None:
        """Store an object with its status."""
        key = f"{item.metadata.namespace}/{item.metadata.name}"
        version = str(int(self.forms[key].metadata.resource_version) + 1 if key in self.forms else 1)
        item = RuleObjectForm(msgspec.structs.replace(item.metadata, resource_version=version), item.spec)
        self.forms[key] = item
        item.status = self.statuses.get(key)
        for store in self.stores:
            store.put(item)


class Replica:
    """One process, built on stand-ins."""

    def __init__(self, server: Server, series: int = 1, most: int = 50) -> None:
        self.clock = FakeClock()
        self.series = series
        self.prometheus = ScriptedPrometheus(
            series_answer=lambda _: [self._one(number) for number in range(self.series)]
        )
        self.harness = make_harness(self.prometheus, rules="rules: []", clock=self.clock)
        now = partial(getattr, self.clock, "now")
        self.changes = RuleObjectChanges()
        self.store = rule_object_store(self.changes, now, most)
        server.stores.append(self.store)
        resolve = partial(find_resource, BUILT_IN)
        readings = self.harness.readings
        self.loader = RuleObjectLoader(self.store, self.changes, resolve, readings, "namespace", UNPACED, now)
        client = cast("ObjectClient", server)
        wall = self.clock.clock.wall
        self.statuses = RuleObjectStatuses(client, self.store, self.changes, readings, UNPACED, now, wall)

    def pass_time(self, seconds: float) -> None:
        for _ in range(round(seconds)):
            if self.changes.contents.is_set():
                self.loader.load()
            self.harness.pass_time(1.0)
            self.statuses.look()

    @staticmethod
    def _one(number: int) -> dict[str, str]:
        return {"__name__": "jobs_waiting", "namespace": "shop", "queue": str(number)}


def ready(status: dict[str, Any]) -> tuple[str, str]:
    (condition,) = (each for each in status["conditions"] if each["type"] == "Ready")
    return condition["status"], condition["reason"]
