"""A writer of scales with an API server in memory, with clocks and failures that a test sets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from adapter.foundation.objects.resources import BUILT_IN, Resource, find_resource
from adapter.foundation.sources.kubernetes.writing import Fence
from adapter.foundation.time.clock import Clock
from recommender.decisions.record import Record, Status, TargetAction, TargetOutcome, TargetReference
from recommender.outputs.scale_writer import ScaleEffects, ScaleHooks, ScaleLimits, ScaleWriter
from tests.support.apiserver_kinds import DEPLOYMENTS, MACHINE_DEPLOYMENTS, STATEFUL_SETS
from tests.support.apiserver_objects import Direct, ObjectStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.foundation.sources.kubernetes.errors import KubernetesError
    from recommender.outputs.pending_writes import PendingWrite
    from recommender.outputs.scale_results import ScaleResult
    from recommender.outputs.write_attempt import ScaleOutcome

MACHINES = Resource("cluster.x-k8s.io", "v1beta1", "machinedeployments", "machinedeployment", "MachineDeployment", True)  # noqa: FBT003
WEB = TargetReference("apps/v1", "Deployment", "shop", "web")
DB = TargetReference("apps/v1", "StatefulSet", "shop", "db")
POOL = TargetReference("cluster.x-k8s.io/v1beta1", "MachineDeployment", "shop", "pool")


def resolve(group: str, name: str) -> Resource:
    return find_resource((*BUILT_IN, MACHINES), group, name)


def decision(
    replicas: int | None,
    *targets: TargetReference,
    action: TargetAction = TargetAction.SCALE,
    name: str = "web",
    current: int | None = None,
) -> Record:
    outcomes = tuple(
        TargetOutcome(target, current, action, recommended_replicas=replicas) for target in targets or (WEB,)
    )
    return Record(name, "proportional", 0.0, Status.OK, "", replicas, targets=outcomes)


class Faulty(Direct):
    """Objects whose calls fail as the test says, before or after they are carried out."""

    def __init__(self, store: ObjectStore) -> None:
        super().__init__(store, self._note)
        self.calls: list[tuple[str, str]] = []
        self.puts: list[tuple[str, int]] = []
        self.before: Callable[[str, str], None] = lambda _method, _path: None
        self.after_put: Callable[[str], None] = lambda _path: None
        self.answer: Callable[[dict[str, Any]], dict[str, Any]] = lambda document: document

    def _note(self, method: str, path: str) -> None:
        self.calls.append((method, path))
        self.before(method, path)

    def replace(self, path: str, document: Mapping[str, Any], fence: Fence) -> dict[str, Any]:
        after = super().replace(path, document, fence)
        self.puts.append((path, document["spec"]["replicas"]))
        self.after_put(path)
        return self.answer(after)


@dataclass
class Harness:
    """A writer whose attempts run at once, on a clock of its own."""

    now: float = 0.0
    wall_ahead: float = 1000.0
    permits: bool = True
    stores: bool = True
    stored: list[str] = field(default_factory=list)
    counted: list[tuple[str, ScaleResult]] = field(default_factory=list)
    outcomes: list[ScaleOutcome] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = ObjectStore()
        for kind, name in ((DEPLOYMENTS, "web"), (STATEFUL_SETS, "db"), (MACHINE_DEPLOYMENTS, "pool")):
            self.store.put(kind, "shop", name, {"kind": "any", "spec": {"replicas": 3}})
        self.objects = Faulty(self.store)
        self.writer = ScaleWriter(
            self.objects,
            resolve,
            Fence(2.0, lambda _seconds: self.permits),
            ScaleHooks(
                before_write=self._before_write,
                count=lambda name, result: self.counted.append((name, result)),
                on_result=self.outcomes.append,
            ),
            limits=ScaleLimits(per_second=1000.0, burst=1000),
            effects=ScaleEffects(Clock(lambda: self.now, self.wall), lambda work: work()),
        )

    def wall(self) -> float:
        return self.now + self.wall_ahead

    def _before_write(self, write: PendingWrite) -> bool:
        self.stored.append(write.recommendation)
        return self.stores

    def decide(self, record: Record, seconds: float = 60.0) -> None:
        self.writer.follow_decision(record.name, [(record, self.wall() + seconds)])
        self.writer.step()

    def wait(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now += 0.25
            self.writer.step()

    @property
    def results(self) -> list[ScaleResult]:
        return [result for _, result in self.counted]

    def size(self, kind: tuple[str, str] = DEPLOYMENTS, name: str = "web") -> int:
        size = self.store.get_without_rights(kind, "shop", name)["spec"]["replicas"]
        assert isinstance(size, int)
        return size


def fails_once(method: str, error: KubernetesError) -> Callable[[str, str], None]:
    left = [error]

    def before(called: str, _path: str) -> None:
        if called == method and left:
            raise left.pop()

    return before
