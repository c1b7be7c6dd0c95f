"""A writer of sizes with a provider in memory, and nodes with pods that are drained."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from adapter.foundation.cluster.values.state import ClusterState, Observed
from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.sources.kubernetes.errors import ErrorStatus, FencedError, error_of_status
from adapter.foundation.sources.kubernetes.writing import Fence, Reply
from adapter.foundation.time.clock import Clock
from recommender.decisions.record import TargetReference
from recommender.kinds.cluster_size.group_writes import PROVIDER_API
from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings, NodeGroupSources, PluginGroups
from recommender.kinds.cluster_size.node_groups.plugin_host import PluginHost
from recommender.outputs.pending_writes import NodeRemoval, PendingWrite
from recommender.outputs.scale_writer import ScaleEffects, ScaleHooks, ScaleLimits, ScaleWriter
from recommender.running.sizes.machine_deletion import MachineDeletion
from recommender.running.sizes.node_removals import NodeRemovals
from recommender.running.sizes.provider_group_writer import ProviderAttempt
from recommender.running.sizes.removal_marks import REMOVAL
from tests.recommender.kinds.cluster_size.builders import node as known_node
from tests.recommender.kinds.cluster_size.node_groups.example_provider import ExampleGroup, ExampleProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from recommender.kinds.cluster_size.node_groups.plugin_reading import PluginGroup
    from recommender.kinds.cluster_size.node_groups.protocol import WritableNodeGroup
    from recommender.outputs.event_rules import TargetEvent
    from recommender.outputs.scale_results import ScaleResult
    from recommender.outputs.write_attempt import ScaleOutcome

GROUP = TargetReference(PROVIDER_API, "NodeGroup", "plugin/example", "small")


class NodeApi:
    """Nodes and their pods as the API server keeps them; `budget` forbids evictions of these pods."""

    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, Any]] = {}
        self.pods: dict[str, dict[str, Any]] = {}
        self.budget: set[str] = set()
        self.evicted: list[str] = []
        self.version = 1
        self.before_put: Callable[[], None] = lambda: None
        self.pod_list: dict[str, Any] = {}
        """Fields that replace those of the list of pods."""
        self.lingers = False
        """Whether an evicted pod keeps running until a test removes it."""

    def add_node(self, name: str, provider_id: str, **spec: object) -> None:
        self.version += 1
        metadata = {
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": str(self.version),
            "annotations": {"own": "1"},
        }
        self.nodes[name] = {"metadata": metadata, "spec": {"providerID": provider_id, **spec}}

    def add_pod(self, name: str, node: str, *, owner: str = "ReplicaSet", **metadata: object) -> None:
        owners = [{"apiVersion": "apps/v1", "kind": owner, "name": "x", "controller": True}] if owner else []
        self.pods[name] = {
            "metadata": {"namespace": "shop", "name": name, "uid": name, "ownerReferences": owners, **metadata},
            "spec": {"nodeName": node, "terminationGracePeriodSeconds": 900},
            "status": {"phase": "Running"},
        }

    def get(self, path: str, query: Mapping[str, str] | None = None, *, seconds: float | None = None) -> Reply:  # noqa: ARG002 - as the protocol has it
        if path == "/api/v1/pods":
            node = (query or {})["fieldSelector"].removeprefix("spec.nodeName=")
            pods = [copy.deepcopy(pod) for pod in self.pods.values() if pod["spec"]["nodeName"] == node]
            return Reply({"kind": "PodList", "apiVersion": "v1", "items": pods} | self.pod_list)
        found = self.nodes.get(path.rpartition("/")[2])
        if found is None:
            raise error_of_status(f"GET {path}", ErrorStatus("not found", "NotFound", 404))
        return Reply(copy.deepcopy(found))

    def create(self, collection: str, document: Mapping[str, Any], *, seconds: float | None = None) -> dict[str, Any]:  # noqa: ARG002 - likewise
        name = collection.split("/")[-2]
        if name in self.budget:
            raise error_of_status(
                f"POST {collection}", ErrorStatus("the disruption budget web", "TooManyRequests", 429)
            )
        assert document["deleteOptions"]["preconditions"] == {"uid": name}
        assert document["deleteOptions"]["gracePeriodSeconds"] <= 600
        self.evicted.append(name)
        if self.lingers:
            self.pods[name]["metadata"]["deletionTimestamp"] = "2026-11-22T10:00:00Z"
        else:
            del self.pods[name]
        return {}

    def replace(self, path: str, document: Mapping[str, Any], fence: Fence) -> dict[str, Any]:
        if not fence.permit(fence.seconds):
            raise FencedError(f"PUT {path}: not permitted")
        self.before_put()
        name = path.rpartition("/")[2]
        if document["metadata"]["resourceVersion"] != self.nodes[name]["metadata"]["resourceVersion"]:
            raise error_of_status(f"PUT {path}", ErrorStatus("changed", "Conflict", 409))
        self.version += 1
        found = copy.deepcopy(dict(document))
        found["metadata"]["resourceVersion"] = str(self.version)
        self.nodes[name] = found
        return copy.deepcopy(found)

    def seen(self) -> ClusterState:
        nodes = [
            known_node(
                name, annotations={key: text for key, text in one["metadata"]["annotations"].items() if "/" in key}
            )
            for name, one in self.nodes.items()
        ]
        return ClusterState(nodes=Observed(tuple(nodes), 0.0))


@dataclass
class HostedGroups:
    """The provider of one recommendation."""

    host: PluginHost

    def look(self, _recommendation: str, _provider: str, group: str) -> PluginGroup:
        return self.host.look(group)

    def change(
        self, _recommendation: str, _provider: str, group: str, change: Callable[[WritableNodeGroup], None]
    ) -> None:
        self.host.change(group, change)


@dataclass
class ProviderHarness:
    """Writers whose attempts run at once, on a clock of their own."""

    now: float = 1000.0
    wall_ahead: float = 0.0
    """How far the wall clock is ahead of the monotonic one."""
    permits: bool = True
    stores: bool = True
    stopped: str = ""
    owner: str = "monitoring/tidewatch"
    rules: ClusterSizeSettings = field(default_factory=lambda: ClusterSizeSettings(NodeGroupSources()))
    outcomes: list[ScaleOutcome] = field(default_factory=list)
    events: list[TargetEvent] = field(default_factory=list)
    counted: list[ScaleResult] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.group = ExampleGroup("small", ["x:///1", "x:///2"])
        self.provider = ExampleProvider([self.group])
        self.api = NodeApi()
        for number in (1, 2):
            self.api.add_node(f"n{number}", f"x:///{number}")
        self.begin()

    def begin(self) -> None:
        """Start a process that knows only what is in the cluster and at the provider."""
        groups = HostedGroups(PluginHost(PluginGroups("example"), seconds=30.0, load=lambda _: self.provider))
        clock = Clock(lambda: self.now, lambda: self.now + self.wall_ahead)
        fence = Fence(3.0, lambda _: self.permits)
        self.removals = NodeRemovals(
            objects=self.api,
            writes=self.api,
            fence=fence,
            deletion=MachineDeletion(groups, clock.monotonic),
            cluster=self.api.seen,
            is_configured=lambda: True,
            stopped=lambda _: self.stopped,
            rules=lambda _: self.rules,
            announce=self.events.append,
            owner=self.owner,
            clock=clock,
        )
        self.writer = ScaleWriter(
            self.api,
            lambda group, kind: find_resource(BUILT_IN, group, kind),
            fence,
            ScaleHooks(
                before_write=lambda _: self.stores,
                count=lambda _, result: self.counted.append(result),
                on_result=self.outcomes.append,
            ),
            attempt=ProviderAttempt(groups, self.removals.begin, self.seen, clock),
            limits=ScaleLimits(per_second=1000.0, burst=1000),
            effects=ScaleEffects(clock, lambda work: work()),
        )

    def resize(
        self, replicas: int, *nodes: str, known: int | None = None, waits_until: float = 0.0, whole: int = 0
    ) -> ScaleOutcome:
        """Carry out a decision; return the outcome of the first attempt."""
        removals = tuple(NodeRemoval(name, whole) for name in nodes)
        write = PendingWrite(
            "nodes", GROUP, replicas, self.now + self.wall_ahead + 60.0, "", known or len(self.group.machines), (),
            removals, waits_until=waits_until,
        )  # fmt: skip
        self.writer.follow_writes("nodes", (write,))
        self.writer.step()
        return self.outcomes[-1]

    def seen(self) -> ClusterState:
        """Return the nodes of the cluster with their provider ids."""
        nodes = (known_node(name, provider_id=one["spec"]["providerID"]) for name, one in self.api.nodes.items())
        return ClusterState(nodes=Observed(tuple(nodes), self.now + self.wall_ahead))

    def later(self, seconds: float) -> None:
        """Let time pass, with one step per second."""
        for _ in range(int(seconds)):
            self.now += 1.0
            self.writer.step()
            self.removals.step()

    def is_usable(self, name: str) -> bool:
        """Return whether a node is usable as before."""
        node = self.api.nodes[name]
        return not node["spec"].get("unschedulable") and not node["spec"].get("taints") and REMOVAL not in _notes(node)

    def is_cordoned(self, name: str) -> bool:
        node = self.api.nodes[name]
        taints = [taint["key"] for taint in node["spec"].get("taints", [])]
        return node["spec"].get("unschedulable") is True and taints == ["ToBeDeletedByClusterAutoscaler"]


def _notes(node: Mapping[str, Any]) -> Mapping[str, str]:
    found: Mapping[str, str] = node["metadata"]["annotations"]
    return found
