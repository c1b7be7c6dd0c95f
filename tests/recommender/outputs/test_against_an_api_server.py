"""The outputs and stores through the real client, with an API server that misbehaves on the wire."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.resources import BUILT_IN, Resource, find_resource
from adapter.foundation.sources.kubernetes.client import KubernetesClient
from adapter.foundation.sources.kubernetes.credentials.access import from_kubeconfig
from adapter.foundation.sources.kubernetes.writing import Fence, ObjectClient
from recommender.decisions.memory import LastValue, Memory
from recommender.decisions.record import Record, Status, TargetAction, TargetOutcome, TargetReference
from recommender.outputs.event_rules import event_of_scale_call
from recommender.outputs.events import EventWriter
from recommender.outputs.scale_results import ScaleResult
from recommender.outputs.scale_writer import ScaleHooks, ScaleWriter
from recommender.running.inputs.target_lookups import TargetLookups
from recommender.running.memory.config_map_store import ConfigMapMemoryStore
from tests.support.apiserver_kinds import DEPLOYMENTS, EVENTS
from tests.support.fake_apiserver import Fault
from tests.support.object_apiserver import ObjectApiServer
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from recommender.outputs.write_attempt import ScaleOutcome

WEB = TargetReference("apps/v1", "Deployment", "shop", "web")
MEMORY = Memory(last=LastValue(5, 1.0, 2.0))
WRITE_SECONDS = 1.5


def resolve(group: str, name: str) -> Resource:
    return find_resource(BUILT_IN, group, name)


def decision(replicas: int, *targets: TargetReference) -> Record:
    outcomes = tuple(
        TargetOutcome(target, 3, TargetAction.SCALE, recommended_replicas=replicas) for target in targets or (WEB,)
    )
    return Record("web", "proportional", 0.0, Status.OK, "", replicas, targets=outcomes)


class Process:
    """The outputs of a recommender and their tasks."""

    def __init__(self, server: ObjectApiServer, folder: Path) -> None:
        self.server = server
        config = server.kubeconfig(folder / "config")
        self.objects = ObjectClient(KubernetesClient(from_kubeconfig(str(config))))
        self.leads_until = time.monotonic() + 1000.0
        self.fence = Fence(WRITE_SECONDS, lambda seconds: time.monotonic() + seconds < self.leads_until)
        self.outcomes: list[ScaleOutcome] = []
        self.results: list[ScaleResult] = []
        self.memories = ConfigMapMemoryStore(self.objects, "monitoring", self.fence)
        self.lookups = TargetLookups(self.objects, resolve)
        self.events = EventWriter(self.objects, self.lookups.uid, lambda _result: None)
        hooks = ScaleHooks(
            before_write=lambda write: self.memories.save(write.recommendation, MEMORY, urgent=True),
            count=lambda _name, result: self.results.append(result),
            on_result=self.outcomes.append,
        )
        self.writer = ScaleWriter(self.objects, resolve, self.fence, hooks)
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.writer.run, args=(self.stop,))
        self.memories.load("web")
        self.thread.start()

    def decide(self, record: Record) -> None:
        self.writer.follow_decision(record.name, [(record, time.time() + 60.0)])

    def size(self, name: str = "web") -> int:
        size = self.server.objects.get_without_rights(DEPLOYMENTS, "shop", name)["spec"]["replicas"]
        assert isinstance(size, int)
        return size


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Process]:
    monkeypatch.setenv("no_proxy", "*")
    with ObjectApiServer() as server:
        for name in ("web", "other"):
            server.objects.put(DEPLOYMENTS, "shop", name, {"kind": "Deployment", "spec": {"replicas": 3}})
        running = Process(server, tmp_path)
        try:
            yield running
        finally:
            running.stop.set()
            running.writer.clear()
            running.thread.join(10.0)


def test_a_decision_is_stored_applied_and_shown_as_an_event_of_the_target(process: Process) -> None:
    process.lookups.look([WEB])
    process.decide(decision(5))
    until(lambda: process.outcomes)
    verbs = [(request.verb, request.path.rsplit("/", 1)[-1]) for request in process.server.requests]
    assert verbs == [
        ("GET", "tidewatch-recommender-web"),
        ("GET", "web"),
        ("GET", "scale"),
        ("POST", "configmaps"),
        ("PUT", "scale"),
    ]
    assert process.size() == 5
    event = event_of_scale_call(process.outcomes[0])
    assert event is not None
    process.events.add(event)
    process.events.flush()
    (written,) = process.server.objects.listed(EVENTS, "shop")
    assert written["involvedObject"]["uid"] == process.outcomes[0].uid


@pytest.mark.parametrize("what", ["lost", "drip", "silence"])
def test_an_unanswered_write_is_followed_by_a_read_and_not_repeated(process: Process, what: str) -> None:
    process.memories.save("web", MEMORY, urgent=True)
    process.server.faults.append(Fault("update", what))  # type: ignore[arg-type]  # one of a table
    process.decide(decision(5))
    until(lambda: len(process.results) >= 2)
    assert process.results == [ScaleResult.ERROR, ScaleResult.UNCHANGED]
    assert sum(request.verb == "PUT" for request in process.server.requests) == 1
    assert "may have taken effect" in process.outcomes[0].message


def test_nothing_is_written_if_leadership_ends_before_the_write_would_end(process: Process) -> None:
    process.memories.save("web", MEMORY, urgent=True)
    process.leads_until = time.monotonic() + 1.4 * WRITE_SECONDS
    process.decide(decision(5))
    until(lambda: process.results)
    assert process.results == [ScaleResult.FENCED]
    assert process.size() == 3


def test_a_slow_target_does_not_delay_another(process: Process) -> None:
    process.server.slow["/apis/apps/v1/namespaces/shop/deployments/web/scale"] = 30.0
    process.decide(decision(5, WEB, replace(WEB, name="other")))
    until(lambda: process.size("other") == 5)
    assert process.size("web") == 3
