"""A writer of sizes with an API server in memory that has objects of Cluster API and a CapacityBuffer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adapter.foundation.objects.resources import Resource, find_resource
from adapter.foundation.sources.kubernetes.writing import Fence
from adapter.foundation.time.clock import Clock
from recommender.decisions.record import TargetReference
from recommender.outputs.pending_writes import MachineRemoval, PendingWrite
from recommender.outputs.scale_writer import ScaleEffects, ScaleHooks, ScaleLimits, ScaleWriter
from recommender.running.sizes.capacity_buffer_writer import CapacityBufferAttempt
from recommender.running.sizes.cluster_api_writer import ClusterApiAttempt
from tests.recommender.kinds.cluster_size.node_groups.cluster_api_objects import (
    BOUNDS,
    cluster,
    machine,
    owner,
    scalable,
)
from tests.recommender.outputs.scale_harness import Faulty
from tests.support.apiserver_kinds import CAPACITY_BUFFERS, CLUSTERS, MACHINE_DEPLOYMENTS, MACHINE_POOLS, MACHINES
from tests.support.apiserver_objects import ObjectStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from recommender.outputs.scale_results import ScaleResult
    from recommender.outputs.write_attempt import ScaleOutcome

OWNER = "tools/tidewatch-recommender"
CAPI = "cluster.x-k8s.io"
GROUP = TargetReference(f"{CAPI}/v1beta2", "MachineDeployment", "capi", "workers")
POOL = TargetReference(f"{CAPI}/v1beta2", "MachinePool", "capi", "pool")
BUFFER = TargetReference("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", "shop", "reserve")
RESOURCES = tuple(
    Resource(group, version, f"{kind.lower()}s", kind.lower(), kind, namespaced=True)
    for group, version, kind in (
        (CAPI, "v1beta2", "MachineDeployment"),
        (CAPI, "v1beta2", "MachinePool"),
        (CAPI, "v1beta2", "Machine"),
        (CAPI, "v1beta2", "Cluster"),
        ("autoscaling.x-k8s.io", "v1beta1", "CapacityBuffer"),
    )
)


def resolve(group: str, name: str) -> Resource:
    return find_resource(RESOURCES, group, name)


def removal(number: int) -> MachineRemoval:
    return MachineRemoval("capi", f"m{number}", f"n{number}")


class Recording(Faulty):
    """Records what each PUT has changed."""

    sent: Callable[[Mapping[str, Any]], Mapping[str, Any]] = staticmethod(lambda document: document)
    """Returns what an admission webhook makes of a Scale."""

    def replace(self, path: str, document: Mapping[str, Any], fence: Fence) -> dict[str, Any]:
        admitted = self.sent(document) if path.endswith("/scale") else document
        after = super(Faulty, self).replace(path, admitted, fence)
        self.after_put(path)
        return after

    @property
    def written(self) -> list[str]:
        return [path.partition("/namespaces/")[2] for method, path in self.calls if method == "PUT"]


class SizeHarness:
    """Writers whose attempts run at once, on a clock of their own: `groups` and `buffers`."""

    def __init__(self) -> None:
        self.now = 0.0
        self.permits = True
        self.stored = 0
        self.counted: list[ScaleResult] = []
        self.outcomes: list[ScaleOutcome] = []
        self.store = ObjectStore()
        self.store.put(MACHINE_DEPLOYMENTS, "capi", "workers", scalable(replicas=4, status={"readyReplicas": 4}))
        self.store.put(MACHINE_POOLS, "capi", "pool", scalable("pool", 4, kind="MachinePool"))
        self.store.put(CLUSTERS, "capi", "prod", cluster())
        for number in range(1, 5):
            owned = owner("MachineSet", "workers-x7f2k")
            self.store.put(MACHINES, "capi", f"m{number}", machine(f"m{number}", f"n{number}", owned_by=owned))
        buffer = {"kind": "CapacityBuffer", "spec": {"podTemplateRef": {"name": "chunk"}, "replicas": 2}}
        self.store.put(CAPACITY_BUFFERS, "shop", "reserve", buffer)
        self.objects = Recording(self.store)
        self.begin()

    def begin(self) -> None:
        """Start a process that knows only what is in the cluster."""
        self.groups = self._writer(ClusterApiAttempt(self.objects, resolve, lambda: self.now))
        self.buffers = self._writer(CapacityBufferAttempt(self.objects, resolve, OWNER, lambda: self.now))

    def _writer(self, attempt: Any) -> ScaleWriter:  # noqa: ANN401 - either attempt
        return ScaleWriter(
            self.objects,
            resolve,
            Fence(2.0, lambda _seconds: self.permits),
            ScaleHooks(
                before_write=self._before_write,
                count=lambda _name, result: self.counted.append(result),
                on_result=self.outcomes.append,
            ),
            attempt=attempt,
            limits=ScaleLimits(per_second=1000.0, burst=1000),
            effects=ScaleEffects(Clock(lambda: self.now, lambda: self.now), lambda work: work()),
        )

    def _before_write(self, _write: PendingWrite) -> bool:
        self.stored += 1
        return True

    def resize(
        self,
        replicas: int,
        *removals: MachineRemoval,
        target: TargetReference = GROUP,
        known_size: int | None = None,
    ) -> ScaleOutcome:
        write = PendingWrite("nodes", target, replicas, self.now + 60.0, known_size=known_size, removals=removals)
        self.groups.follow_writes("nodes", [write])
        self.groups.step()
        return self.outcomes[-1]

    def buffer(self, replicas: int, *, withdraws: bool = False) -> ScaleOutcome:
        self.buffers.follow_writes(
            "nodes", [PendingWrite("nodes", BUFFER, replicas, self.now + 60.0, withdraws=withdraws)]
        )
        self.buffers.step()
        return self.outcomes[-1]

    def wait(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now += 0.25
            self.groups.step()

    def annotate(self, kind: tuple[str, str], name: str, **annotations: str) -> None:
        def change(one: dict[str, Any]) -> None:
            one["metadata"]["annotations"] = {**BOUNDS, **one["metadata"].get("annotations", {}), **annotations}

        self.store.change(kind, "capi", name, change)

    def change(self, kind: tuple[str, str], namespace: str, name: str, change: Callable[[Any], object]) -> None:
        self.store.change(kind, namespace, name, change)

    @property
    def size(self) -> int:
        size = self.store.get_without_rights(MACHINE_DEPLOYMENTS, "capi", "workers")["spec"]["replicas"]
        assert isinstance(size, int)
        return size

    @property
    def marked(self) -> list[str]:
        mark = "cluster.x-k8s.io/delete-machine"
        listed = self.store.listed(MACHINES)
        return [one["metadata"]["name"] for one in listed if mark in one["metadata"]["annotations"]]
