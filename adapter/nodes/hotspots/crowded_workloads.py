"""Determines which workloads have too many of their replicas on hot nodes, and what would spread them (pure)."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from adapter.nodes.hotspots.movable_pods import can_move

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterPod
    from adapter.nodes.model.nodes_snapshot import NodesSnapshot

_Place: TypeAlias = tuple[str, str]
"""Namespace and UID of a controller."""

_LEAST_SHARE: Final = 0.5
_LEAST_REPLICAS: Final = 2
_MOST_NAMED: Final = 100
"""At most this many controllers are returned: those with the most replicas on hot nodes."""
_OF_ONE_POD: Final = frozenset(
    {
        "pod-template-hash",
        "controller-revision-hash",
        "statefulset.kubernetes.io/pod-name",
        "apps.kubernetes.io/pod-index",
    }
)
"""Labels that controllers add to their pods, and whose values differ in other versions or pods."""


@dataclass(frozen=True, slots=True)
class CrowdedReplicas:
    """A controller with at least half of its replicas, and at least two, on hot nodes."""

    namespace: str
    controller: str
    """Kind and name, such as `ReplicaSet/web-5d8f`."""
    on_hot_nodes: int
    replicas: int
    nodes: tuple[str, ...]
    """The hot nodes with replicas of the controller."""
    labels: Mapping[str, str]
    """Labels that all pods of the controller have, including the pods of later versions."""

    @property
    def ratio(self) -> float:
        """The share of the controller's replicas that are on hot nodes."""
        return self.on_hot_nodes / self.replicas


def crowded_replicas(snapshot: NodesSnapshot, hot: Collection[str]) -> tuple[CrowdedReplicas, ...]:
    """Return the controllers with at least half of their replicas on hot nodes, sorted by how many these are.

    If all nodes are hot, the result is empty, since there is no better place.
    """
    names = set(hot)
    if not names or not any(name not in names for name in snapshot.columns.names):
        return ()
    on_hot: dict[_Place, Counter[str]] = defaultdict(Counter)
    samples: dict[_Place, ClusterPod] = {}
    for node in names:
        for place, pod in _replicas(snapshot, node):
            on_hot[place][node] += 1
            samples[place] = pod
    crowded = {place for place, nodes in on_hot.items() if nodes.total() >= _LEAST_REPLICAS}
    replicas = _live_pods(snapshot, crowded) if crowded else {}
    found = [
        _crowded_replicas(samples[place], on_hot[place], pods)
        for place, pods in replicas.items()
        if on_hot[place].total() >= _LEAST_SHARE * len(pods)
    ]
    order = sorted(found, key=lambda each: (-each.on_hot_nodes, each.namespace, each.controller))
    return tuple(order[:_MOST_NAMED])


def _replicas(snapshot: NodesSnapshot, node: str) -> Iterator[tuple[_Place, ClusterPod]]:
    """Yield the pods of a node that could run elsewhere, with their controllers.

    A pod may name a controller in another namespace, to which it does not belong.
    """
    for pod in snapshot.pods_by_node.get(node, ()):
        if pod.controller is not None and can_move(pod, snapshot.daemon_sets):
            yield (pod.namespace, pod.controller.uid), pod


def _live_pods(snapshot: NodesSnapshot, crowded: Collection[_Place]) -> Mapping[_Place, Sequence[ClusterPod]]:
    """Return the live pods of each of the `crowded` controllers."""
    found: dict[_Place, list[ClusterPod]] = defaultdict(list)
    for pods in snapshot.pods_by_node.values():
        for pod in pods:
            if (place := _place_of(pod)) in crowded and not (pod.is_terminating or pod.has_ended):
                found[place].append(pod)
    return found


def _place_of(pod: ClusterPod) -> _Place:
    return pod.namespace, "" if pod.controller is None else pod.controller.uid


def _crowded_replicas(pod: ClusterPod, nodes: Counter[str], replicas: Sequence[ClusterPod]) -> CrowdedReplicas:
    labels = set(pod.labels.items()).intersection(*(each.labels.items() for each in replicas))
    assert pod.controller is not None, "replicas have a controller"
    return CrowdedReplicas(
        pod.namespace,
        f"{pod.controller.kind}/{pod.controller.name}",
        nodes.total(),
        len(replicas),
        tuple(sorted(nodes)),
        {key: value for key, value in sorted(labels) if key not in _OF_ONE_POD},
    )


def anti_affinity(labels: Mapping[str, str]) -> dict[str, object] | None:
    """Return the `affinity` of a pod template that keeps pods with these labels apart; None without labels."""
    if not labels:
        return None
    term = {"labelSelector": {"matchLabels": dict(labels)}, "topologyKey": "kubernetes.io/hostname"}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
