"""A compressed day on a real API server: pods come and end by a plan, and a stand-in for a cloud follows the sizes.

The real scheduler places the pods, and a recommender sizes the group. The events are kept as a recording of one day, so
that a replay can be run with the same pods and nodes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL, PodScheduling
from adapter.foundation.cluster.values.pods import ClusterPod, SchedulingFacts
from adapter.foundation.cluster.values.state import ClusterNode
from adapter.foundation.objects.pod_requests import PodResources
from adapter.foundation.objects.quantities import parse_quantity
from benchmarks.made_past import DAY_SECONDS, START
from recommender.recording.recording import RecordedNode, RecordedPod, Recording
from tests.e2e.cluster_size.machine_groups import CORES, DELETE
from tests.e2e.controlplane.nodes import PATH as NODES
from tests.support.waiting import rounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.e2e.cluster_size.machine_groups import MachineGroups

SCHEDULER: Final = "played"
"""The profile of the scheduler that places the pods."""
MOST_NODES: Final = 30
SAFE: Final = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}
"""Marks pods without an owner as safe to evict: the plan makes them, and the stand-in recreates those it evicts."""
_CPU: Final = (500, 1000, 1000, 2000)
"""Requests in milli."""
_LOOK_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class PlannedPod:
    """A pod of the plan, with times in seconds from the beginning."""

    comes: float
    ends: float
    cpu_milli: int


def planned_day(seed: int, seconds: float, waves: int, size: int) -> list[PlannedPod]:
    """Return the pods of a day: a few that stay, and waves whose pods come within a twelfth of the wave's time.

    Most pods of a wave end together, so that nodes are removed; every sixth one stays, and is evicted if its node is
    removed.
    """
    draw, length = Random(seed), seconds / waves
    pods = [PlannedPod(0.0, seconds, 1000) for _ in range(CORES - 1)]
    for wave in range(waves):
        begin = wave * length + length / 20
        end = begin + 0.6 * length
        for number in range(size + draw.randint(-size // 4, size // 4)):
            ends = end + (draw.uniform(0.0, length / 40) if number % 6 else 0.37 * length)
            pods.append(PlannedPod(begin + draw.uniform(0.0, length / 12), ends, draw.choice(_CPU)))
    return sorted(pods, key=lambda pod: pod.comes)


@dataclass(slots=True)
class _Seen:
    """A pod or node that came and went, with times in seconds from the beginning."""

    came: float
    cpu_milli: int = 0
    planned_end: float = 0.0
    bound: float | None = None
    node: str = ""
    gone: float | None = None


@dataclass(slots=True)
class PlayedDay:
    """One node group, its machines, and the pods of a plan."""

    groups: MachineGroups
    seconds: float
    """The length of the day."""
    startup_seconds: float
    """The time from the first pod that waits for a node until the node is Ready.

    A request that comes late on a busy machine changes nothing: other tests judge how soon sizes are written, and a day
    that is so much compressed cannot.
    """
    began: float = 0.0
    nodes: dict[str, _Seen] = field(default_factory=dict)
    pods: dict[str, _Seen] = field(default_factory=dict)
    evictions: int = 0
    requested: list[float] = field(default_factory=list)
    """When each node was requested, in the order of the nodes."""
    _coming: list[float] = field(default_factory=list)
    """When the requested nodes will be ready."""
    _machines: dict[str, str] = field(default_factory=dict)
    """The node of each machine."""

    def play(self, plan: Sequence[PlannedPod]) -> None:
        """Run the day."""
        left = list(plan)
        self.began = time.monotonic()
        for _ in rounds(_LOOK_SECONDS, self.seconds):
            while left and left[0].comes <= self._now():
                pod = left.pop(0)
                self._add_pod(pod.cpu_milli, pod.ends)
            for name, seen in self.pods.items():
                if seen.gone is None and seen.planned_end <= self._now():
                    self._end_pod(name)
            self._note_places()
            self._follow_size()

    def recording(self) -> Recording:
        """Return what happened as the recording of a day."""
        stretch = DAY_SECONDS / self.seconds
        amounts = sorted({seen.cpu_milli for seen in self.pods.values()})

        def at(seconds: float) -> float:
            return START + min(seconds, self.seconds) * stretch

        def gone(seen: _Seen) -> float | None:
            return None if seen.gone is None or seen.gone >= self.seconds else at(seen.gone)

        pods = [
            RecordedPod(
                amounts.index(seen.cpu_milli),
                at(seen.came),
                None if seen.bound is None else at(seen.bound),
                gone(seen),
                seen.node,
            )
            for seen in self.pods.values()
        ]
        nodes = [RecordedNode(self._node(name), at(seen.came), gone(seen)) for name, seen in self.nodes.items()]
        kinds = tuple(self._pod_kind(amount) for amount in amounts)
        ordered = sorted(pods, key=lambda pod: pod.created)
        return Recording("a played day", START, START + DAY_SECONDS, tuple(nodes), tuple(ordered), kinds)

    def node_hours(self) -> float:
        """Return the hours of all nodes in the day's time, each counted from its request."""
        ends = (self.seconds if seen.gone is None else seen.gone for seen in self.nodes.values())
        seconds = sum(min(end, self.seconds) - since for since, end in zip(self.requested, ends, strict=False))
        return 24 * seconds / self.seconds

    def begin(self) -> None:
        """Make the group with its first node."""
        self.groups.create_group(0, least=1, most=MOST_NODES)
        self.groups.cluster.client.merge(self.groups.group, {"spec": {"replicas": 1}})
        self.requested.append(0.0)
        self._add_machine(0.0)

    def _now(self) -> float:
        return time.monotonic() - self.began

    @property
    def _pods_path(self) -> str:
        return f"/api/v1/namespaces/{self.groups.namespace}/pods"

    def _add_pod(self, cpu_milli: int, ends: float) -> None:
        name = f"played-{len(self.pods)}"
        container = {"name": "main", "image": "shop/web:1", "resources": {"requests": {"cpu": f"{cpu_milli}m"}}}
        spec = {
            "schedulerName": SCHEDULER,
            "containers": [container],
            "nodeSelector": {"pool": self.groups.namespace},
        }
        metadata = {"name": name, "annotations": SAFE}
        self.pods[name] = _Seen(self._now(), cpu_milli, ends)
        self.groups.cluster.client.create(self._pods_path, {"metadata": metadata, "spec": spec})

    def _end_pod(self, name: str) -> None:
        self.groups.cluster.client.delete(f"{self._pods_path}/{name}", {"gracePeriodSeconds": 0})
        self.pods[name].gone = self._now()

    def _note_places(self) -> None:
        for pod in self.groups.cluster.client.items(self._pods_path):
            seen = self.pods[pod["metadata"]["name"]]
            if seen.bound is None and (node := pod["spec"].get("nodeName")):
                seen.bound, seen.node = self._now(), node

    def _follow_size(self) -> None:
        """Add or remove nodes until the requested size is reached."""
        size = self.groups.size
        missing = size - len(self._machines) - len(self._coming)
        if missing > 0:
            self._coming += [self._first_wait() + self.startup_seconds] * missing
            self.requested += [self._now()] * missing
        while self._coming and self._coming[0] <= self._now():
            self._add_machine(self._coming.pop(0))
        if len(self._machines) + len(self._coming) > size:
            self._remove(len(self._machines) + len(self._coming) - size)

    def _first_wait(self) -> float:
        """Return since when the oldest pod has waited for which no node has been requested."""
        last = max(self.requested)
        waits = [seen.came for seen in self.pods.values() if seen.bound is None and seen.gone is None]
        return min([came for came in waits if came > last], default=self._now())

    def _add_machine(self, at: float) -> None:
        number = len(self.nodes)
        self.groups.add_machine(number)
        self.nodes[self.groups.node(number)] = _Seen(at)
        self._machines[self.groups.machine(number)] = self.groups.node(number)

    def _remove(self, number: int) -> None:
        """Remove the marked machines as the controllers of Cluster API do, and evict their pods."""
        client = self.groups.cluster.client
        items = client.items(self.groups.path("machines"))
        marked = [one["metadata"]["name"] for one in items if DELETE in one["metadata"].get("annotations", {})]
        for machine in marked[:number]:
            node = self._machines.pop(machine)
            client.merge(f"{NODES}/{node}", {"spec": {"unschedulable": True}})
            self._note_places()
            for name, seen in list(self.pods.items()):
                if seen.node == node and seen.gone is None:
                    self._end_pod(name)
                    self._add_pod(seen.cpu_milli, seen.planned_end)
                    self.evictions += 1
            client.delete(f"{NODES}/{node}")
            client.delete(self.groups.path("machines", machine))
            self.nodes[node].gone = self._now()

    def _node(self, name: str) -> ClusterNode:
        offered = {key: parse_quantity(value) for key, value in _OFFERED.items()}
        return ClusterNode(
            name,
            {HOSTNAME_LABEL: name, "pool": self.groups.namespace},
            (),
            unschedulable=False,
            conditions={"Ready": "True"},
            created=None,
            capacity=offered,
            allocatable=offered,
        )

    def _pod_kind(self, cpu_milli: int) -> ClusterPod:
        requests = {"cpu": cpu_milli}
        scheduling = PodScheduling(node_selector=(("pool", self.groups.namespace),))
        return ClusterPod(
            namespace=self.groups.namespace,
            name="",
            uid="",
            node="",
            labels={},
            controller=None,
            phase="Running",
            is_terminating=False,
            bound_at=None,
            ended_at=None,
            priority=0,
            resources=PodResources(requests=requests, non_zero_requests=requests | {"memory": 200 << 20}),
            facts=SchedulingFacts(scheduling, SAFE, 0.0, None, 30.0, "Always"),
        )


_OFFERED: Final = {"cpu": str(CORES), "memory": "16Gi", "pods": "110"}
