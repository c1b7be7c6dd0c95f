"""Random clusters as objects of a real API server, and its scheduler's verdicts on their pending pods.

The objects are those of `scheduling_clusters`, changed where the API server would refuse them: a duplicate constraint,
an overhead without its RuntimeClass, an extended resource without a limit. Pods have no volumes, since nothing
provisions any: the scheduler's own plugins judge these (`test_scheduling_filters.py`).
"""

from __future__ import annotations

import copy
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tests.e2e.controlplane.client import ApiError
from tests.e2e.controlplane.nodes import PATH as NODES
from tests.e2e.judge.scheduling_clusters import NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster
    from tests.e2e.judge.judging import Objects

SCHEDULER: Final = "sized"
"""The profile of the scheduler that places the pods, with defaults for everything else."""
PREFIX: Final = "sized-"
"""The prefix of the namespaces, which nobody else uses."""
GATE: Final = "e2e.tidewatch.io/not-read-yet"
"""The scheduling gate that keeps a pod from the scheduler until everything has been read."""
OWN_NODE: Final = "e2e-node"
"""The suite's own node, which has room for everything and is cordoned."""
_FINALIZER: Final = "e2e.tidewatch.io/terminating"
_HEAVY: Final = "sized-heavy"
"""The RuntimeClass with the overhead of some pods."""
_OVERHEAD: Final = {"cpu": "200m"}
_EXTENDED: Final = "nvidia.com/gpu"
_AT_ONCE: Final = 8
_LISTS: Final = {
    "nodes": "Node",
    "pods": "Pod",
    "namespaces": "Namespace",
    "claims": "PersistentVolumeClaim",
    "volumes": "PersistentVolume",
    "storageClasses": "StorageClass",
    "csiNodes": "CSINode",
}


def pods_path(namespace: str) -> str:
    """Return the path of the pods of a namespace."""
    return f"/api/v1/namespaces/{namespace}/pods"


def path_of(pod: Document) -> str:
    """Return the path of a pod."""
    return f"{pods_path(pod['metadata']['namespace'])}/{pod['metadata']['name']}"


def valid_pod(pod: Document) -> Document:
    """Return a pod that the API server accepts, in a namespace of these tests and without volumes."""
    made = copy.deepcopy(pod)
    metadata, spec = made["metadata"], made["spec"]
    metadata["namespace"] = PREFIX + metadata["namespace"]
    for key in ("uid", "deletionTimestamp", "deletionGracePeriodSeconds"):
        metadata.pop(key, None)
    made.pop("status")
    del spec["volumes"]
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        requests = container["resources"]["requests"]
        # The API server refuses an extended resource without the equal limit.
        container["resources"]["limits"] = {key: value for key, value in requests.items() if key == _EXTENDED}
    if "overhead" in spec:
        spec["overhead"], spec["runtimeClassName"] = _OVERHEAD, _HEAVY
    spec["topologySpreadConstraints"] = _valid_spread(spec["topologySpreadConstraints"])
    for kind in ("podAffinity", "podAntiAffinity"):
        for term in spec["affinity"].get(kind, {}).get("requiredDuringSchedulingIgnoredDuringExecution", ()):
            term["namespaces"] = [PREFIX + name for name in term.get("namespaces", ())]
    return made


def _valid_spread(constraints: Iterable[Document]) -> list[Document]:
    """Return one constraint for each key and action; only those that refuse nodes may state a number of domains."""
    found: dict[tuple[str, str], Document] = {}
    for one in constraints:
        if one["whenUnsatisfiable"] == "ScheduleAnyway":
            one.pop("minDomains", None)
        found.setdefault((one["topologyKey"], one["whenUnsatisfiable"]), one)
    return list(found.values())


def valid_node(node: Document) -> Document:
    """Return a node that the API server accepts: no two taints have the same key and effect."""
    made = copy.deepcopy(node)
    taints = {(taint["key"], taint["effect"]): taint for taint in made["spec"]["taints"]}
    made["spec"]["taints"] = list(taints.values())
    return made


@dataclass(frozen=True, slots=True)
class PlacedClusters:
    """The cluster in which random clusters are made, one after another."""

    cluster: Cluster
    threads: ThreadPoolExecutor

    @contextmanager
    def placed(self, nodes: Iterable[Document], bound: Sequence[Document]) -> Iterator[None]:
        """Make nodes with their pods for the block; at its end all pods, and all nodes but the suite's, are removed."""
        try:
            self.add_nodes(valid_node(node) for node in nodes)
            self._all(self._create_bound, bound)
            yield
        finally:
            self._clear()

    def add_nodes(self, nodes: Iterable[Document]) -> None:
        """Make these nodes."""
        self._all(self._create_node, nodes)

    def add_pending(self, *pods: Document) -> None:
        """Make pods that the scheduler ignores until `release`."""
        for pod in pods:
            made = valid_pod(pod)
            made["spec"] |= {"schedulerName": SCHEDULER, "schedulingGates": [{"name": GATE}]}
            self.cluster.client.create(pods_path(made["metadata"]["namespace"]), made)

    def release(self, pods: Iterable[Document]) -> None:
        """Let the scheduler place pods."""
        for pod in pods:
            self.cluster.client.merge(path_of(pod), {"spec": {"schedulingGates": None}})

    def read(self) -> list[Document]:
        """Return all objects that a decision about places can depend on, as kubectl prints them."""
        kinds = "nodes,pods,namespaces,runtimeclasses.node.k8s.io"
        printed = self.cluster.kubectl("get", kinds, "--all-namespaces", "--output=json")
        found: list[Document] = json.loads(printed)["items"]
        return found

    def pods(self) -> dict[str, Document]:
        """Return the pods of the random cluster by their names, which are unique."""
        found = (pod for name in NAMESPACES for pod in self.cluster.client.items(pods_path(PREFIX + name)))
        return {pod["metadata"]["name"]: pod for pod in found}

    def refusals(self, pod: Document) -> list[str]:
        """Return what a pod's FailedScheduling events say about the nodes, without the part about preemption."""
        metadata = pod["metadata"]
        selector = f"involvedObject.uid={metadata['uid']},reason=FailedScheduling"
        found = self.cluster.client.items(f"/api/v1/namespaces/{metadata['namespace']}/events", fieldSelector=selector)
        messages = (event["message"] for event in found)
        return [message.partition(". ")[0].rstrip(".") for message in messages if "nodes are available" in message]

    def _create_node(self, node: Document) -> None:
        client = self.cluster.client
        client.create(NODES, node)
        # A new node is tainted until the node controller has seen it; that one does not run here.
        client.merge(f"{NODES}/{node['metadata']['name']}", {"spec": {"taints": node["spec"].get("taints") or None}})

    def _create_bound(self, pod: Document) -> None:
        made = valid_pod(pod)
        is_terminating = "deletionTimestamp" in pod["metadata"]
        if is_terminating:
            made["metadata"]["finalizers"] = [_FINALIZER]
        self.cluster.client.create(pods_path(made["metadata"]["namespace"]), made)
        if is_terminating:
            self.cluster.client.delete(path_of(made))

    def _clear(self) -> None:
        self._all(self._delete_pod, self.pods().values())
        names = (node["metadata"]["name"] for node in self.cluster.client.items(NODES))
        paths = [f"{NODES}/{name}" for name in names if name != OWN_NODE]
        self._all(self.cluster.client.delete, paths)
        self.cluster.wait_for("the end of the pods", lambda: not self.pods())

    def _delete_pod(self, pod: Document) -> None:
        client = self.cluster.client
        if pod["metadata"].get("finalizers"):
            try:
                client.merge(path_of(pod), {"metadata": {"finalizers": None}})
            except ApiError as error:
                if error.status != 404:
                    raise
        client.delete(path_of(pod), {"gracePeriodSeconds": 0})

    def _all(self, call: Callable[[Any], object], items: Iterable[Any]) -> None:
        list(self.threads.map(call, items))


def as_judged(items: Iterable[Document], pending: Document) -> Objects:
    """Return objects by their kinds with one pending pod, in the form that `our_verdict` reads."""
    found: Objects = {key: [] for key in _LISTS}
    keys = {kind: key for key, kind in _LISTS.items()}
    uid = pending["metadata"]["uid"]
    for one in items:
        if one["kind"] in keys and one["metadata"]["uid"] != uid:
            found[keys[one["kind"]]].append(one)
    return {**found, "pod": pending}


@contextmanager
def placed_clusters(cluster: Cluster) -> Iterator[PlacedClusters]:
    """Prepare the cluster for random ones: namespaces, a RuntimeClass, and no other pods or places for them."""
    client = cluster.client
    cluster.wait_until_empty()
    cluster.apply(
        {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": _HEAVY},
            "handler": "heavy",
            "overhead": {"podFixed": _OVERHEAD},
        },
        *(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PREFIX + name, "labels": labels}}
            for name, labels in NAMESPACES.items()
        ),
    )
    for name in NAMESPACES:
        account = f"/api/v1/namespaces/{PREFIX}{name}/serviceaccounts/default"
        cluster.wait_for("the namespace's service account", lambda path=account: client.find(path))  # type: ignore[misc]
    client.merge(f"{NODES}/{OWN_NODE}", {"spec": {"unschedulable": True}})
    try:
        with (
            cluster.start_scheduler({"profiles": [{"schedulerName": SCHEDULER}]}),
            ThreadPoolExecutor(_AT_ONCE) as threads,
        ):
            yield PlacedClusters(cluster, threads)
    finally:
        client.merge(f"{NODES}/{OWN_NODE}", {"spec": {"unschedulable": None}})
        for name in NAMESPACES:
            client.delete(f"/api/v1/namespaces/{PREFIX}{name}")
        client.delete(f"/apis/node.k8s.io/v1/runtimeclasses/{_HEAVY}")
