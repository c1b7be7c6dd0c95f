"""A working copy of the cluster that can be changed and put back: nodes, their pods, and the free resources of each.

Simulations place and evict pods in it. It belongs to one decision and one thread; the original facts are not changed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL, NO_CONSTRAINTS
from recommender.kinds.cluster_size.model.resources import amounts_of
from recommender.kinds.cluster_size.predicates.namespaces import Namespaces
from recommender.kinds.cluster_size.predicates.node_info import NodeInfo, PodKey, take
from recommender.kinds.cluster_size.predicates.node_only_filters import StaticFilter
from recommender.kinds.cluster_size.predicates.node_table import NodeTable
from recommender.kinds.cluster_size.predicates.pod_shapes import ShapeTable
from recommender.kinds.cluster_size.predicates.pods_by_shape import Census
from recommender.kinds.cluster_size.predicates.volumes.storage_view import storage_view

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from adapter.foundation.cluster.values.constraints import PodScheduling
    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod
    from adapter.foundation.cluster.values.storage import Storage
    from adapter.foundation.objects.quantities import Quantity
    from recommender.kinds.cluster_size.model.size_situation import ClusterSituation, UnlistedPods
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape

__all__ = ["NodeInfo", "Snapshot"]

_HAS_A_NODE: Final = "pod {}/{} has a node in the snapshot already: evict it first"
_Undo: TypeAlias = "Callable[[], None]"


class Snapshot:
    """Nodes in a fixed order with their pods, and an undo log."""

    def __init__(
        self,
        nodes: Iterable[ClusterNode],
        pods: Iterable[ClusterPod],
        storage: Storage | None = None,
        namespace_labels: Mapping[str, Mapping[str, str]] | None = None,
        unlisted: Mapping[str, UnlistedPods] | None = None,
        shapes: ShapeTable | None = None,
    ) -> None:
        """Pods that have ended, are not bound, or are bound to a node that is not listed are ignored.

        Of several nodes with the same name, or pods with the same namespace and name, the first counts. `unlisted` are
        the pods of each node, by its name, that are not among `pods`. `shapes` are those of an earlier snapshot, whose
        pods had their labels, resources and constraints from the same objects.
        """
        self._nodes = NodeTable()
        self._unlisted = {} if unlisted is None else unlisted
        # The amounts are cached by identity and kept alive: nodes of one template share them.
        self._allocatable: dict[int, tuple[Mapping[str, Quantity], Mapping[str, int]]] = {}
        self.census = Census(self._nodes, Namespaces(namespace_labels))
        self._places: dict[PodKey, NodeInfo] = {}
        self._shapes = ShapeTable() if shapes is None else shapes
        self._static_filters: dict[PodScheduling, StaticFilter] = {}
        # The constraints themselves are kept, too: the identity of a deleted object may be reused for another.
        self._filters_by_identity: dict[int, tuple[PodScheduling, StaticFilter]] = {}
        self._log: list[_Undo] = []
        for node in nodes:
            if node.name not in self._nodes:
                self._nodes.append(self._new_info(node, is_added=False))
        self.storage = storage_view(storage, self._nodes.values())
        self._put_all(pods)

    @property
    def nodes(self) -> Mapping[str, NodeInfo]:
        """The nodes by name, in order: those given, then those added."""
        return self._nodes

    def strange_names(self) -> frozenset[str]:
        """Return the names that hostnames, unlisted pods and CSINodes state, but that no node has."""
        hosts = {info.node.labels.get(HOSTNAME_LABEL, "") for info in self._nodes.values()}
        return frozenset(hosts.union(self._unlisted, self.storage.csi_nodes).difference(self._nodes))

    def node_of(self, pod: ClusterPod) -> NodeInfo | None:
        """Return the node of a pod; None if it has none."""
        return self._places.get((pod.namespace, pod.name))

    def shape(self, pod: ClusterPod) -> PodShape:
        """Return the shape of a pod, the same object for all pods that are alike to every filter."""
        return self._shapes.shape(pod)

    def add_node(self, node: ClusterNode, pods: Iterable[ClusterPod] = ()) -> NodeInfo:
        """Add a node with pods on it, such as those of DaemonSets. Raises ValueError if the name is taken."""
        info = self._new_info(node, is_added=True)
        self._nodes.append(info)
        self.census.add_node(info)
        self._log.append(lambda: self._forget(info))
        for pod in pods:
            self.place(pod, node.name)
        return info

    def remove_node(self, name: str) -> tuple[ClusterPod, ...]:
        """Remove a node and return its pods, which are on no node afterwards.

        Raises KeyError if there is no such node.
        """
        info = self._nodes[name]
        shapes = [self._shapes.shape(pod) for pod in info.pods.values()]
        # The node's free resources do not matter while it is removed: its pods are only taken out of the census.
        for (key, pod), shape in zip(info.pods.items(), shapes, strict=True):
            del self._places[key]
            self.census.change(shape, info, -1, is_terminating=pod.is_terminating)
        self._nodes.remove(info)
        self.census.remove_node(info)
        self._log.append(lambda: self._put_node_back(info, shapes))
        return tuple(info.pods.values())

    def place(self, pod: ClusterPod, node: str) -> None:
        """Put a pod on a node, without a check.

        Raises ValueError if a pod of this namespace and name has a node already, and KeyError if there is no such node.
        """
        info = self._nodes[node]
        key = (pod.namespace, pod.name)
        if key in self._places:
            raise ValueError(_HAS_A_NODE.format(*key))
        shape = self._shapes.shape(pod)
        self._places[key] = info
        info.pods[key] = pod
        self.try_pods(shape, info, 1, is_terminating=pod.is_terminating)
        self._log.append(lambda: self._take(key, shape, info))

    def place_alike(self, pods: Sequence[ClusterPod], shape: PodShape, info: NodeInfo) -> None:
        """Put pods of one shape, none of which is being deleted, on a node of this snapshot, as `place` does."""
        places, here = self._places, info.pods
        keys = [(pod.namespace, pod.name) for pod in pods]
        for key, pod in zip(keys, pods, strict=True):
            if key in places:
                raise ValueError(_HAS_A_NODE.format(*key))
            places[key] = info
            here[key] = pod
        self.try_pods(shape, info, len(keys))
        self._log.append(lambda: self._take_alike(keys, shape, info))

    def evict(self, pod: ClusterPod) -> None:
        """Remove a pod from its node. Raises KeyError if it has none."""
        key = (pod.namespace, pod.name)
        info = self._places.pop(key)
        before = info.pods
        placed = before[key]
        # The order of the others is unchanged if the dictionary itself is put back.
        info.pods = {other: one for other, one in before.items() if other != key}
        self._count(placed, info, -1)
        self._log.append(lambda: self._return(key, info, before))

    def checkpoint(self) -> int:
        """Return a mark for `revert`."""
        return len(self._log)

    def revert(self, checkpoint: int) -> None:
        """Undo all changes since the mark, the last one first."""
        while len(self._log) > checkpoint:
            self._log.pop()()

    def try_pods(self, shape: PodShape, info: NodeInfo, count: int, *, is_terminating: bool = False) -> None:
        """Count pods of a shape on a node without naming them; a call with the negative count removes them.

        The undo log does not know of them: the caller removes them before it reverts changes or removes the node.
        """
        take(info, shape, count)
        self.census.change(shape, info, count, is_terminating=is_terminating)

    def static_filter(self, scheduling: PodScheduling) -> StaticFilter:
        """Return the filter of nodes by their labels and taints, one for all shapes with the same constraints."""
        known = self._filters_by_identity.get(id(scheduling))
        if known is not None:
            return known[1]
        key = replace(
            NO_CONSTRAINTS,
            node_selector=scheduling.node_selector,
            node_terms=scheduling.node_terms,
            tolerations=scheduling.tolerations,
        )
        found = self._static_filters.get(key)
        if found is None:
            found = self._static_filters[key] = StaticFilter(key)
        self._filters_by_identity[id(scheduling)] = (scheduling, found)
        return found

    def _new_info(self, node: ClusterNode, *, is_added: bool) -> NodeInfo:
        known = self._allocatable.get(id(node.allocatable))
        if known is None:
            known = self._allocatable[id(node.allocatable)] = node.allocatable, amounts_of(node.allocatable)
        info = NodeInfo(node, known[1], is_added=is_added)
        others = self._unlisted.get(node.name)
        if others is not None:
            info.requested, info.pod_count = dict(others.requested), others.count
        return info

    def _count(self, pod: ClusterPod, info: NodeInfo, count: int) -> None:
        self.try_pods(self._shapes.shape(pod), info, count, is_terminating=pod.is_terminating)

    def _forget(self, info: NodeInfo) -> None:
        self._nodes.forget(info)
        self.census.remove_node(info)

    def _put_all(self, pods: Iterable[ClusterPod]) -> None:
        by_name, places, shape_of, change = (
            dict(self._nodes.items()),
            self._places,
            self._shapes.shape,
            self.census.change,
        )
        for pod in pods:
            info = by_name.get(pod.node)
            key = (pod.namespace, pod.name)
            if info is not None and not pod.has_ended and key not in places:
                places[key] = info
                info.pods[key] = pod
                shape = shape_of(pod)
                take(info, shape, 1)
                change(shape, info, 1, is_terminating=pod.is_terminating)

    def _take(self, key: PodKey, shape: PodShape, info: NodeInfo) -> None:
        del self._places[key]
        pod = info.pods.pop(key)
        self.try_pods(shape, info, -1, is_terminating=pod.is_terminating)

    def _take_alike(self, keys: Sequence[PodKey], shape: PodShape, info: NodeInfo) -> None:
        for key in keys:
            del self._places[key], info.pods[key]
        self.try_pods(shape, info, -len(keys))

    def _return(self, key: PodKey, info: NodeInfo, pods: dict[PodKey, ClusterPod]) -> None:
        self._places[key] = info
        info.pods = pods
        self._count(pods[key], info, 1)

    def _put_node_back(self, info: NodeInfo, shapes: Iterable[PodShape]) -> None:
        self._nodes.put_back(info)
        self.census.add_node(info)
        for (key, pod), shape in zip(info.pods.items(), shapes, strict=True):
            self._places[key] = info
            self.census.change(shape, info, 1, is_terminating=pod.is_terminating)


def snapshot_of(situation: ClusterSituation, shapes: ShapeTable | None = None) -> Snapshot:
    """Return a snapshot with the nodes and the bound pods of a situation; `shapes` may be those of an earlier one."""
    return Snapshot(
        situation.nodes,
        situation.pods,
        situation.storage,
        situation.namespace_labels,
        situation.unlisted_pods,
        shapes,
    )
