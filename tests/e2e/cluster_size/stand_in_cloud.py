"""A stand-in for a cloud behind Cluster API: it makes the Machines that a size requires, with nodes that start slowly.

It also places pods, since the suite's own stand-in for the kubelet, which would do so, is paused: a node that can hold
pods takes one. Everything happens in `step`, which a test calls until it has seen what it waits for.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.e2e.cluster_size.machine_groups import CAPACITY, CORES, MAX, MIN, VERSION
from tests.e2e.controlplane.nodes import PATH as NODES
from tests.e2e.controlplane.nodes import NodeSpec, register

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.e2e.cluster_size.machine_groups import MachineGroups
    from tests.e2e.controlplane.client import Document

GPU: Final = "nvidia.com/gpu"
NOT_READY: Final = "node.kubernetes.io/not-ready"
_POOL: Final = "pool"
_BOOT_SECONDS: Final = 1.0
"""The time from the registration of a node until it is Ready."""


@dataclass(frozen=True, slots=True)
class SlowStart:
    """The resources and taints in which a group's nodes differ for some time after they are Ready."""

    group: str
    seconds: float = 0.0
    taint: str = ""
    """The key of a taint that is removed only after this time; empty for none."""
    has_gpus: bool = False
    """Whether its nodes have a GPU that can be allocated only after this time."""


@dataclass(slots=True)
class _Machine:
    name: str
    made: float
    stage: int = -1
    """The last stage that was written: 0 not ready, 1 Ready and incomplete, 2 complete."""


@dataclass(slots=True)
class StandInCloud:
    """The groups of a namespace, their machines and their nodes."""

    groups: MachineGroups
    starts: Sequence[SlowStart]
    machines: dict[str, list[_Machine]] = field(default_factory=dict)
    """The machines of each group, in the order in which they were made."""

    def create_groups(self) -> None:
        """Make the MachineDeployments, each with a node that is complete and full."""
        for start in self.starts:
            self._create_group(start)
            self.machines[start.group] = []
            self._add_machine(start, made=time.monotonic() - _BOOT_SECONDS - start.seconds)
            self.add_pod(start, "busy", node=self.machines[start.group][0].name)
        self.step()

    def sizes(self) -> dict[str, int]:
        """Return `spec.replicas` by group."""
        items = self.groups.cluster.client.items(self.groups.path("machinedeployments"))
        return {item["metadata"]["name"]: int(item["spec"]["replicas"]) for item in items}

    def step(self) -> bool:
        """Make missing machines, advance the nodes, and place pods; return whether every pod has a node."""
        sizes, now = self.sizes(), time.monotonic()
        for start in self.starts:
            its = self.machines[start.group]
            while len(its) < sizes[start.group]:
                self._add_machine(start, made=now)
            for machine in its:
                self._advance(start, machine, now)
        return self._place()

    def add_pod(self, start: SlowStart, name: str, node: str = "") -> None:
        """Make a pod that needs a whole node of the group."""
        resources: dict[str, Any] = {"requests": {"cpu": str(CORES - 1)}}
        if start.has_gpus:
            resources = {"requests": {**resources["requests"], GPU: "1"}, "limits": {GPU: "1"}}
        spec: Document = {
            "containers": [{"name": "main", "image": "shop/web:1", "resources": resources}],
            "nodeSelector": {_POOL: self._pool(start)},
        }
        if node:
            spec["nodeName"] = node
        self.groups.cluster.client.create(self._pods, {"metadata": {"name": f"{start.group}-{name}"}, "spec": spec})

    @property
    def _pods(self) -> str:
        return f"/api/v1/namespaces/{self.groups.namespace}/pods"

    def _pool(self, start: SlowStart) -> str:
        return f"{self.groups.namespace}-{start.group}"

    def _create_group(self, start: SlowStart) -> None:
        annotations = {
            MIN: "1",
            MAX: "100",
            f"{CAPACITY}/cpu": str(CORES),
            f"{CAPACITY}/memory": "16Gi",
            f"{CAPACITY}/labels": f"{_POOL}={self._pool(start)}",
        }
        if start.has_gpus:
            annotations |= {f"{CAPACITY}/gpu-type": GPU, f"{CAPACITY}/gpu-count": "1"}
        self.groups.cluster.client.create(
            self.groups.path("machinedeployments"),
            {
                "apiVersion": VERSION,
                "kind": "MachineDeployment",
                "metadata": {"name": start.group, "annotations": annotations},
                "spec": {"clusterName": "prod", "replicas": 1, "template": {"spec": {"clusterName": "prod"}}},
            },
        )

    def _add_machine(self, start: SlowStart, made: float) -> None:
        client, its = self.groups.cluster.client, self.machines[start.group]
        machine = _Machine(f"{self._pool(start)}-{len(its)}", made)
        owner = client.get(self.groups.path("machinedeployments", start.group))
        reference = {
            "apiVersion": VERSION,
            "kind": "MachineDeployment",
            "name": start.group,
            "uid": owner["metadata"]["uid"],
            "controller": True,
        }
        client.create(
            self.groups.path("machines"),
            {
                "apiVersion": VERSION,
                "kind": "Machine",
                "metadata": {"name": machine.name, "ownerReferences": [reference]},
                "spec": {"clusterName": "prod"},
            },
        )
        self.groups.stack.callback(client.delete, f"{NODES}/{machine.name}")
        self._advance(start, machine, time.monotonic())
        status = {"status": {"nodeRef": {"name": machine.name}}}
        client.merge(f"{self.groups.path('machines', machine.name)}/status", status)
        its.append(machine)

    def _advance(self, start: SlowStart, machine: _Machine, now: float) -> None:
        age = now - machine.made - _BOOT_SECONDS
        stage = 0 if age < 0 else 1 if age < start.seconds else 2
        if stage == machine.stage:
            return
        is_complete = stage == 2
        capacity = {"cpu": str(CORES), "memory": "16Gi", "pods": "110"}
        if start.has_gpus and is_complete:
            capacity[GPU] = "1"
        keys = [] if is_complete or not start.taint else [start.taint]
        keys += [NOT_READY] if stage == 0 and NOT_READY not in keys else []
        taints = [{"key": key, "effect": "NoSchedule"} for key in keys]
        client = self.groups.cluster.client
        register(client, NodeSpec(machine.name, capacity, labels={_POOL: self._pool(start)}, taints=taints))
        if stage == 0:
            ready = {"type": "Ready", "status": "False", "reason": "KubeletNotReady"}
            client.merge(f"{NODES}/{machine.name}/status", {"status": {"conditions": [ready]}})
        machine.stage = stage

    def _place(self) -> bool:
        pods = self.groups.cluster.client.items(self._pods)
        taken = {pod["spec"].get("nodeName") for pod in pods}
        for pod in pods:
            if pod["spec"].get("nodeName"):
                continue
            its = next(s for s in self.starts if self._pool(s) == pod["spec"]["nodeSelector"][_POOL])
            free = [one.name for one in self.machines[its.group] if one.stage == 2 and one.name not in taken]
            if not free:
                return False
            self._bind(pod["metadata"]["name"], free[0])
            taken.add(free[0])
        return True

    def _bind(self, pod: str, node: str) -> None:
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}
        self.groups.cluster.client.create(f"{self._pods}/{pod}/binding", binding)
