"""A large cluster as `kubectl get nodes,pods,replicasets,daemonsets -o json` prints it, made by a seeded generator.

The node groups are of three sizes of nodes, three zones and several classes. Every tenth node of the class `web` is
half empty, so that it is a candidate for removal; nodes of the class `batch` are full, and most pending pods ask for
that class, so that new nodes are needed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Final, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

GROUPS: Final = 30
PENDING_WORKLOADS: Final = 60
GROUP_LABEL: Final = "example.com/group"
CLASS_LABEL: Final = "example.com/class"
ZONE_LABEL: Final = "topology.kubernetes.io/zone"
CORES: Final = (8, 16, 32)
GIB_PER_CORE: Final = 4
_DAEMON_SETS: Final = ("logs", "metrics", "network", "storage")
_REQUESTS: Final = (100, 250, 250, 500, 500, 1000)
_REPLICAS: Final = (1, 2, 3, 5, 10, 20, 50)
_FULL, _HALF_EMPTY = 0.85, 0.3
_CREATED: Final = "2026-11-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """The cluster to make."""

    nodes: int
    pods: int
    pending: int
    padding_bytes: int = 0
    """The size of the unused environment variables in each pod."""
    seed: int = 0


def write_cluster(plan: ClusterPlan, stream: TextIO) -> None:
    """Write the list of all objects."""
    stream.write('{"apiVersion": "v1", "kind": "List", "items": [\n')
    for number, item in enumerate(_objects(plan)):
        stream.write(",\n" if number else "")
        json.dump(item, stream)
    stream.write("\n]}\n")


def group_of(node: int) -> int:
    """Return the number of the group of a node."""
    return node % GROUPS


def class_of(group: int) -> str:
    """Return the class of nodes of a group."""
    return "batch" if group >= GROUPS // 2 else "web"


def cores_of(group: int) -> int:
    """Return the cores of a node of a group."""
    return CORES[group // 3 % len(CORES)]


def _objects(plan: ClusterPlan) -> Iterator[Mapping[str, Any]]:
    workloads = _Workloads(plan)
    for number in range(plan.nodes):
        yield _node(number)
    total_cores = sum(cores_of(group_of(number)) for number in range(plan.nodes))
    cores = pods = 0
    for number in range(plan.nodes):
        cores += cores_of(group_of(number))
        wanted = plan.pods * cores // total_cores - pods
        pods += wanted
        yield from workloads.pods_of(number, wanted)
    yield from workloads.pending()
    yield from workloads.owners()


class _Workloads:
    """Makes the pods of ReplicaSets, one ReplicaSet after another, and then the owners."""

    def __init__(self, plan: ClusterPlan) -> None:
        self._plan = plan
        self._random = Random(plan.seed)
        self._env = [
            {"name": f"SETTING_{number:03}", "value": "a value that is as long as values are"}
            for number in range(plan.padding_bytes // 75)
        ]
        self._sets: list[dict[str, Any]] = []
        self._left = 0
        self._made = 0

    def pods_of(self, number: int, wanted: int) -> Iterator[Mapping[str, Any]]:
        """Yield the pods of a node: those of DaemonSets, then others until the node is as full as it should be."""
        group, name = group_of(number), f"node-{number}"
        free = cores_of(group) * 1000 - 120
        for daemon_set in _DAEMON_SETS[:wanted]:
            free -= 100
            yield self._pod(_daemon_set(daemon_set), name)
        others = wanted - len(_DAEMON_SETS)
        is_full = class_of(group) == "batch"
        share = 1.0 if is_full else _HALF_EMPTY if number // GROUPS % 10 == 0 else _FULL
        budget = free * share
        for place in range(others):
            is_last = is_full and place == others - 1
            owner = self._rest_of(budget) if is_last else self._next_set(budget / (others - place))
            asked = owner["cpu_milli"]
            budget -= asked
            yield self._pod(owner, name)

    def pending(self) -> Iterator[Mapping[str, Any]]:
        """Yield pending pods, some of which have constraints."""
        for workload in range(PENDING_WORKLOADS):
            count = self._plan.pending // PENDING_WORKLOADS + (workload < self._plan.pending % PENDING_WORKLOADS)
            spec: dict[str, Any] = {}
            labels = {"app": f"waiting-{workload}"}
            if workload % 4:
                spec["nodeSelector"] = {CLASS_LABEL: "batch"}
            if workload % 10 == 3:
                spec["topologySpreadConstraints"] = [_spread(labels)]
            if workload % 10 == 7:
                spec["affinity"] = {"podAntiAffinity": _repelled(labels)}
            asked = self._random.randrange(1, 14) * 500
            owner = self._set(f"waiting-{workload}", asked, count, spec)
            for _ in range(count):
                yield self._pod(owner, "")

    def owners(self) -> Iterator[Mapping[str, Any]]:
        """Yield the owners of the pods."""
        for owner in (*map(_daemon_set, _DAEMON_SETS), *self._sets):
            labels = {"app": owner["name"]}
            template = {"metadata": {"labels": labels}, "spec": _spec(owner, [])}
            spec = {"selector": {"matchLabels": labels}, "template": template}
            if owner["kind"] == "ReplicaSet":
                spec["replicas"] = owner["count"]
            metadata = {"name": owner["name"], "namespace": owner["namespace"], "uid": owner["uid"]}
            yield {"apiVersion": "apps/v1", "kind": owner["kind"], "metadata": metadata, "spec": spec}

    def _next_set(self, at_most: float) -> dict[str, Any]:
        """Return the current ReplicaSet while it has pods left, or a small one if its pods are too large."""
        if not self._left:
            self._left = self._random.choice(_REPLICAS)
            self._set(f"app-{len(self._sets)}", self._random.choice(_REQUESTS), self._left, {})
            self._latest = self._sets[-1]
        if self._latest["cpu_milli"] > 2 * at_most:
            return self._set(f"app-{len(self._sets)}", max(10, int(at_most)), 1, {})
        self._left -= 1
        return self._latest

    def _rest_of(self, budget: float) -> dict[str, Any]:
        """Return a ReplicaSet of one pod that leaves no place on its node."""
        return self._set(f"app-{len(self._sets)}", max(10, int(budget) - 300), 1, {})

    def _set(self, name: str, cpu_milli: int, count: int, spec: Mapping[str, Any]) -> dict[str, Any]:
        memory_mib = cpu_milli * self._random.randrange(1, GIB_PER_CORE) * 1024 // 1000
        made = {
            "kind": "ReplicaSet",
            "name": name,
            "namespace": f"team-{len(self._sets) % 40}",
            "uid": f"uid-{name}",
            "cpu_milli": cpu_milli,
            "memory_mib": memory_mib,
            "count": count,
            "spec": spec,
        }
        self._sets.append(made)
        return made

    def _pod(self, owner: Mapping[str, Any], node: str) -> Mapping[str, Any]:
        self._made += 1
        reference = {key: owner[key] for key in ("kind", "name", "uid")}
        metadata = {
            "name": f"{owner['name']}-{self._made}",
            "namespace": owner["namespace"],
            "uid": f"pod-{self._made}",
            "creationTimestamp": _CREATED,
            "labels": {"app": owner["name"]},
            "ownerReferences": [{"apiVersion": "apps/v1", "controller": True, **reference}],
        }
        condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": _CREATED}
        if not node:
            condition |= {"status": "False", "reason": "Unschedulable", "message": "0 nodes are available"}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": _spec(owner, self._env) | ({"nodeName": node} if node else {}),
            "status": {"phase": "Running" if node else "Pending", "conditions": [condition]},
        }


def _spec(owner: Mapping[str, Any], env: list[dict[str, str]]) -> dict[str, Any]:
    requests = {"cpu": f"{owner['cpu_milli']}m", "memory": f"{owner['memory_mib']}Mi"}
    container = {
        "name": "main",
        "image": f"registry.example.com/{owner['name']}:1.0",
        "resources": {"requests": requests},
    }
    return {"containers": [container | ({"env": env} if env else {})], "tolerations": _TOLERATIONS, **owner["spec"]}


def _daemon_set(name: str) -> dict[str, Any]:
    return {
        "kind": "DaemonSet",
        "name": name,
        "namespace": "kube-system",
        "uid": f"uid-{name}",
        "cpu_milli": 100,
        "memory_mib": 128,
        "spec": {},
    }


def _node(number: int) -> Mapping[str, Any]:
    group = group_of(number)
    name, cores = f"node-{number}", cores_of(group)
    labels = {
        "kubernetes.io/hostname": name,
        ZONE_LABEL: f"zone-{group % 3}",
        GROUP_LABEL: f"group-{group}",
        CLASS_LABEL: class_of(group),
    }
    capacity = {"cpu": str(cores), "memory": f"{cores * GIB_PER_CORE}Gi", "pods": "110"}
    allocatable = capacity | {"cpu": f"{cores * 1000 - 120}m"}
    status = {
        "capacity": capacity,
        "allocatable": allocatable,
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": _CREATED}],
    }
    metadata = {"name": name, "uid": f"uid-{name}", "creationTimestamp": _CREATED, "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}, "status": status}


def _spread(labels: Mapping[str, str]) -> Mapping[str, Any]:
    return {
        "maxSkew": 1,
        "topologyKey": ZONE_LABEL,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": labels},
    }


def _repelled(labels: Mapping[str, str]) -> Mapping[str, Any]:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


_TOLERATIONS: Final = [
    {"key": f"node.kubernetes.io/{problem}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for problem in ("not-ready", "unreachable")
]
