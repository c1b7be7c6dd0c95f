"""A recommender that writes: its real loop, look-ups, memory and writer, with a failing API server in memory.

harness = WritingHarness(text, targets)
process = harness.process()
process.poll()
process.write_for(10)       # seconds
harness.writes                # the sizes that the API server took
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from adapter.foundation.cluster.values.state import ClusterNode, ClusterState, Observed, Unknown
from adapter.foundation.objects.resources import BUILT_IN, Resource, find_resource
from adapter.foundation.sources.kubernetes.writing import Fence
from adapter.foundation.time.clock import Clock
from recommender.configuration.reading import read_configuration
from recommender.decisions.loads.load_inputs import LoadInput
from recommender.decisions.loads.prediction import PredictedLoad, Prediction
from recommender.outputs.events import EventWriter
from recommender.outputs.scale_writer import ScaleEffects, ScaleHooks, ScaleLimits, ScaleWriter
from recommender.running.effects.leader_effects import ClusterEffects
from recommender.running.inputs.due_targets import MOST_LOOK_UPS, DueTargets
from recommender.running.inputs.input_gathering import Gatherer, InputSources, LookUpThreads
from recommender.running.inputs.own_writes import OwnWrites
from recommender.running.inputs.poll_plan import plan_of
from recommender.running.inputs.target_lookups import TargetLookups
from recommender.running.memory.config_map_store import ConfigMapMemoryStore
from recommender.running.memory.memories import Memories
from recommender.running.polls.poll_decisions import PollDecisions
from recommender.running.polls.runner import Latest, Runner
from tests.support.apiserver_kinds import DEPLOYMENTS
from tests.support.apiserver_objects import Direct, ObjectStore, named

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.foundation.cluster.values.state import Autoscaler
    from recommender.decisions.loads.load_inputs import LoadInputs
    from recommender.decisions.record import Record, TargetReference
    from recommender.outputs.pending_writes import PendingWrite
    from recommender.running.loads.load_needs import LoadNeed

START = 1_800_000_000.0
WRITE_SECONDS = 2.0


class KilledError(BaseException):
    """The process ends here, as with `kill -9`."""


@dataclass(frozen=True, slots=True)
class SizeWrite:
    """A size that the API server has accepted."""

    time: float
    target: TargetReference
    before: int
    after: int


@dataclass
class WritingHarness:
    """The cluster, and the time that passes in it."""

    text: str
    targets: Mapping[tuple[str, str], TargetReference]
    """The targets by namespace and name."""
    now: float = START
    nodes: Observed[int] | Unknown = field(default_factory=lambda: Observed(8, START))
    """The number of nodes, which is also the load of each target."""
    owners: Mapping[str, Observed[tuple[Autoscaler, ...]] | Unknown] = field(default_factory=dict)
    before: Callable[[str, str], None] = lambda _method, _path: None
    """Called before a call takes effect; what it raises becomes the answer."""
    after: Callable[[str, str], None] = lambda _method, _path: None
    """Called after a call takes effect; what it raises becomes the answer."""
    writes: list[SizeWrite] = field(default_factory=list)
    is_for_each: bool = True
    """Whether a load has a series for each target, or one value."""
    most_look_ups: int = MOST_LOOK_UPS
    """The largest number of targets of `forEach` that are looked up in a poll."""

    def __post_init__(self) -> None:
        self.store = ObjectStore()

    def put(self, target: TargetReference, replicas: int, paused: str | None = None) -> None:
        """Create a Deployment, or change it as a person does."""
        metadata: dict[str, Any] = {} if paused is None else {"annotations": {"tidewatch.io/paused": paused}}
        if found := self.store.find(DEPLOYMENTS, target.namespace, target.name):
            metadata["uid"] = found["metadata"]["uid"]
        document = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {**metadata, "generation": 1},
            "spec": {"replicas": replicas},
            "status": {"observedGeneration": 1, "updatedReplicas": replicas, "replicas": replicas},
        }
        self.store.put(DEPLOYMENTS, target.namespace, target.name, document)

    def put_again(self, target: TargetReference, replicas: int) -> None:
        """Delete a Deployment, and create it again at once."""
        self.store.remove(DEPLOYMENTS, target.namespace, target.name)
        self.put(target, replicas)

    def size(self, target: TargetReference) -> int:
        """Return the size of a Deployment."""
        size = self.store.get_without_rights(DEPLOYMENTS, target.namespace, target.name)["spec"]["replicas"]
        assert isinstance(size, int)
        return size

    def process(self, wall_ahead: float = 0.0) -> WritingProcess:
        """Start a process whose clock is ahead by this much."""
        return WritingProcess(self, wall_ahead)


class _Calls(Direct):
    """The calls of one process."""

    def __init__(self, harness: WritingHarness) -> None:
        super().__init__(harness.store, self._ask_harness)
        self._harness = harness

    def _ask_harness(self, method: str, path: str) -> None:
        # What the test says now, which changes from turn to turn.
        self._harness.before(method, path)

    def replace(self, path: str, document: Mapping[str, Any], fence: Fence) -> dict[str, Any]:
        harness = self._harness
        target = None
        if path.endswith("/scale"):
            _, namespace, name = named(path.removesuffix("/scale"))
            target = harness.targets[namespace, name]
            before = harness.size(target)
        taken = super().replace(path, document, fence)
        if target is not None:
            harness.writes.append(SizeWrite(harness.now, target, before, harness.size(target)))
        harness.after("PUT", path)
        return taken


class WritingProcess:
    """One process, which leads all the time."""

    def __init__(self, harness: WritingHarness, wall_ahead: float) -> None:
        self.harness = harness
        self.plan = plan_of(_configuration(harness.text))
        self.wall_ahead = wall_ahead
        clock = Clock(monotonic=lambda: harness.now, wall=lambda: harness.now + self.wall_ahead)
        fence = Fence(WRITE_SECONDS, self.may_write)
        calls = _Calls(harness)
        self.store = ConfigMapMemoryStore(calls, "monitoring", fence, clock=clock)
        memories = Memories(self.store, clock.monotonic)
        lookups = TargetLookups(calls, _resolve, clock=clock)
        own_writes = OwnWrites(clock.wall)

        def before_write(write: PendingWrite) -> bool:
            own_writes.begin(write)
            return memories.store_now(write.recommendation, write.target)

        hooks = ScaleHooks(before_write=before_write, count=lambda _name, _result: None, on_result=own_writes.note)
        self.writer = ScaleWriter(
            calls,
            _resolve,
            fence,
            hooks,
            limits=ScaleLimits(per_second=1000.0, burst=1000),
            effects=ScaleEffects(clock, lambda work: work()),
        )
        events = EventWriter(calls, lookups.uid, lambda _result: None, clock=clock)
        at_once = LookUpThreads(lambda work: work(), lambda work: work())
        sources = InputSources(
            self._cluster,
            lambda _asked: Unknown("nothing is asked"),
            lambda *_: Observed(None, clock.wall()),
            lookups.look,
            self._load,
        )
        self.wall = clock.wall
        self.latest = Latest()
        self._runner = Runner(
            plan=lambda: self.plan,
            gatherer=Gatherer(sources, at_once, at_once, clock.monotonic),
            decisions=PollDecisions(memories, clock),
            leadership=self,
            memories=memories,
            effects=ClusterEffects(self.writer, events, lambda _now, _records: None),
            latest=self.latest,
            clock=clock,
            wake=threading.Event(),
            due_targets=DueTargets(harness.most_look_ups, own_writes.with_own_size),
        )

    def poll(self) -> dict[str, Record]:
        """Decide once, and return the records."""
        self._runner.poll()
        return {record.name: record for record in self.latest.get().records}

    def write_for(self, seconds: int) -> None:
        """Write what is due, second by second."""
        for _ in range(seconds):
            self.writer.step()
            self.store.flush()
            self.harness.now += 1.0

    def _cluster(self) -> ClusterState:
        found = self.harness.nodes
        nodes = found if isinstance(found, Unknown) else Observed(_nodes(found.value), found.time, found.began_empty)
        return ClusterState(nodes=nodes, autoscalers=self.harness.owners)

    def _load(self, _need: LoadNeed) -> Observed[LoadInputs] | Unknown:
        """Return a load of one per node, for each target or for all together."""
        found = self.harness.nodes
        if isinstance(found, Unknown):
            return found
        load = LoadInput(Prediction(PredictedLoad(float(found.value), None, None), "linear", ""))
        targets = self.harness.targets.values() if self.harness.is_for_each else (None,)
        return Observed({target: Observed(load, found.time) for target in targets}, self.wall())

    # As leadership

    def is_leader(self) -> bool:
        return True

    def may_write(self, seconds: float) -> bool:
        return seconds >= 0

    def holder(self) -> str:
        return "ours"


def _configuration(text: str) -> Any:  # noqa: ANN401 - its type is of no use here
    configuration = read_configuration(text, "r.yaml")
    assert not configuration.refused, configuration.refused
    return configuration


def _resolve(group: str, name: str) -> Resource:
    return find_resource(BUILT_IN, group, name)


def _nodes(count: int) -> tuple[ClusterNode, ...]:
    return tuple(
        ClusterNode(f"n{number}", {}, (), False, {"Ready": "True"}, None, {}, {})  # noqa: FBT003 - as it is declared
        for number in range(count)
    )
