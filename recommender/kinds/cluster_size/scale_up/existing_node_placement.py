"""Places pending pods on nodes that exist or are on their way, as the scheduler would (`filter out schedulable`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.grouping import group_values
from adapter.foundation.objects.pod_requests import CPU, MEMORY
from recommender.kinds.cluster_size.estimator.binpacking import is_passing
from recommender.kinds.cluster_size.estimator.node_turns import NodeTurns
from recommender.kinds.cluster_size.predicates.filters import PodFilter
from recommender.kinds.cluster_size.predicates.labelled_nodes import LabelledNodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape
    from recommender.kinds.cluster_size.predicates.snapshot import NodeInfo, Snapshot

_ROOM_RESOURCES: Final = (CPU, MEMORY)
_MOST_REPETITIONS: Final = 3
"""How often refused pods are retried: those in a longer chain of dependencies need a new node or the next decision."""


@dataclass(frozen=True, slots=True)
class _Refused:
    """Pods of one shape that no node has taken, but that one might take after other pods have been placed."""

    turns: NodeTurns
    pods: Sequence[ClusterPod]
    placed: int
    """How many pods had been placed when the nodes were last tried."""


class RoomyNodes:
    """Nodes with the free CPU and memory of each when this object was created.

    As long as pods are only added, a node has no more free than that, so a skipped node has no room.
    """

    def __init__(self, nodes: Sequence[NodeInfo]) -> None:
        self._nodes = nodes
        self._labelled = LabelledNodes(nodes)
        self._left = {
            resource: [info.allocatable.get(resource, 0) - info.requested.get(resource, 0) for info in nodes]
            for resource in _ROOM_RESOURCES
        }

    def of(self, shape: PodShape) -> Sequence[NodeInfo]:
        """Return the nodes that may have the labels, CPU and memory for a pod of the shape, in their order."""
        numbers = self._labelled.selected(shape.scheduling)
        for resource in _ROOM_RESOURCES:
            if resource in shape.requests:
                left, amount = self._left[resource], shape.requests[resource]
                numbers = [number for number in numbers if left[number] >= amount]
        return [self._nodes[number] for number in numbers]


class Placer:
    """The filters of one snapshot, one for each shape, and the placement of pods with them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._filters: dict[PodShape, PodFilter] = {}
        self._turns: dict[PodShape, NodeTurns] = {}
        """The nodes that may take a pod, by shape that depends on other pods."""

    def filter_of(self, shape: PodShape) -> PodFilter:
        """Return the filter of a shape."""
        found = self._filters.get(shape)
        if found is None:
            found = self._filters[shape] = PodFilter(self._snapshot, shape)
        return found

    def place_all(
        self, pods: Iterable[ClusterPod], nodes: Sequence[NodeInfo], changed: Sequence[NodeInfo] | None = None
    ) -> list[ClusterPod]:
        """Place pods on the first nodes that take them, those with the highest priority first; return the others.

        Pods that are alike are placed one after the other. `changed` are the nodes that were added since these pods
        were refused, if they were; others can only have become fuller since then.
        """
        by_priority = sorted(pods, key=lambda pod: -pod.priority)
        batches = group_values((self._snapshot.shape(pod), pod) for pod in by_priority)
        roomy = RoomyNodes(nodes if changed is None else changed)
        left: list[ClusterPod] = []
        refused: list[_Refused] = []
        placed = 0
        for shape, batch in batches.items():
            judge = self.filter_of(shape)
            if judge.problem is not None:
                left += batch
            elif is_passing(shape):
                turns = self._turns_of(shape, nodes, roomy, is_first=changed is None)
                count = turns.place(batch)
                placed += count
                refused.append(_Refused(turns, batch[count:], placed))
            else:
                count = self._fill_nodes(judge, shape, batch, roomy.of(shape))
                placed += count
                left += batch[count:]
        return left + self._asked_again(refused, placed)

    def _asked_again(self, refused: Iterable[_Refused], placed: int) -> list[ClusterPod]:
        """Retry refused pods as the scheduler does, since pods placed later may allow them; return those still refused.

        `placed` is how many pods have been placed in all.
        """
        waiting = [one for one in refused if one.pods]
        for _ in range(_MOST_REPETITIONS):
            if all(one.placed == placed for one in waiting):
                break
            still: list[_Refused] = []
            for one in waiting:
                count = 0 if one.placed == placed else one.turns.place(one.pods)
                placed += count
                still.append(_Refused(one.turns, one.pods[count:], placed))
            waiting = [one for one in still if one.pods]
        return [pod for one in waiting for pod in one.pods]

    def place_if_it_fits(self, pod: ClusterPod, info: NodeInfo) -> bool:
        """Place a pod on a node if the node can take it; return whether it can."""
        if not self.filter_of(self._snapshot.shape(pod)).fits(info):
            return False
        self._snapshot.place(pod, info.node.name)
        return True

    def _fill_nodes(
        self, judge: PodFilter, shape: PodShape, batch: Sequence[ClusterPod], nodes: Iterable[NodeInfo]
    ) -> int:
        """Fill one node after another, since one that refuses a pod refuses all like it; return how many are placed."""
        placed = 0
        for info in nodes:
            room = judge.room(info, len(batch) - placed)
            if room:
                self._snapshot.place_alike(batch[placed : placed + room], shape, info)
            placed += room
            if placed == len(batch):
                break
        return placed

    def forget_refusals(self) -> None:
        """Ask every node again, because pods or nodes were removed from the snapshot."""
        for turns in self._turns.values():
            turns.forget_refusals()

    def _turns_of(self, shape: PodShape, nodes: Sequence[NodeInfo], roomy: RoomyNodes, *, is_first: bool) -> NodeTurns:
        """Return the nodes that may take pods of a shape.

        The first call for a shape returns all such nodes. Later calls return those of the previous call and those that
        have changed since. `roomy` has only the changed nodes, except if `is_first`: then it has all.
        """
        known = None if is_first else self._turns.get(shape)
        if known is None:
            known = self._turns[shape] = NodeTurns(self._snapshot, self.filter_of(shape), shape)
            known.add(roomy.of(shape) if is_first else nodes)
        else:
            known.add(roomy.of(shape))
        return known


def place_nominated(pods: Iterable[ClusterPod], snapshot: Snapshot, usable: Iterable[NodeInfo]) -> list[ClusterPod]:
    """Place the pods for which the scheduler evicts others on the nodes that it has chosen; return the other pods.

    The pods to evict still exist, so the resources are not checked. A node that is cordoned or no longer
    usable takes none.
    """
    nodes = {info.node.name for info in usable if not info.node.unschedulable}
    left: list[ClusterPod] = []
    for pod in pods:
        name = "" if pod.facts is None else pod.facts.nominated_node
        if name in nodes:
            snapshot.place(pod, name)
        else:
            left.append(pod)
    return left
