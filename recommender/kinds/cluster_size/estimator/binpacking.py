"""Binpacking: how many nodes of one group a set of pods needs, by first-fit decreasing over pod groups.

The rule is that of Cluster Autoscaler's binpacking estimator, pod by pod. Pods of one group are alike, so larger steps
give the same result: a node that is full for one of them is not tried again, and as many as fit are placed at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL
from adapter.foundation.objects.pod_requests import CPU, MEMORY
from recommender.kinds.cluster_size.estimator.estimate_model import Estimate, NewNode
from recommender.kinds.cluster_size.estimator.node_turns import Candidates
from recommender.kinds.cluster_size.model.resources import amounts_of
from recommender.kinds.cluster_size.predicates.filters import PodFilter
from recommender.kinds.cluster_size.predicates.node_resources_fit import has_resources
from recommender.kinds.cluster_size.predicates.template_nodes import free_names, new_node

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod
    from recommender.kinds.cluster_size.estimator.estimate_model import PodGroup
    from recommender.kinds.cluster_size.model.groups import NodeTemplate
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape
    from recommender.kinds.cluster_size.predicates.snapshot import NodeInfo, Snapshot


def order_by_score(groups: Iterable[PodGroup], node: ClusterNode) -> tuple[PodGroup, ...]:
    """Return the groups sorted by the score of one of their pods on the node, highest first; ties keep their order."""
    offered = amounts_of(node.allocatable)
    return tuple(sorted(groups, key=lambda group: -_score(group, offered)))


def _score(group: PodGroup, offered: Mapping[str, int]) -> float:
    """Return `cpu / allocatable cpu + memory / allocatable memory` of one pod.

    The sum is that of Cluster Autoscaler's decreasing order; a resource that the node does not have adds nothing.
    """
    requests = group.shape.requests
    return sum(requests.get(name, 0) / offered[name] for name in (CPU, MEMORY) if offered.get(name, 0) > 0)


SPREAD_REFUSAL: Final = "node(s) didn't match pod topology spread constraints"


def estimate(
    snapshot: Snapshot, groups: Sequence[PodGroup], template: NodeTemplate, *, name_prefix: str, max_nodes: int
) -> Estimate:
    """Return which pods new nodes made by the template can take, and how many nodes that needs.

    Opened nodes are called `NAME_PREFIX-0` and so on, skipping names that are taken. At most `max_nodes` are opened.
    The snapshot is unchanged afterwards.
    """
    packing = _Packing(snapshot, groups, template, name_prefix, max_nodes)
    mark = snapshot.checkpoint()
    try:
        for group in order_by_score(groups, template.node):
            packing.add(group)
    finally:
        packing.take_back()
        snapshot.revert(mark)
    return packing.result()


@dataclass(slots=True)
class _ShapeProgress:
    """Which nodes may still take pods of one shape; during an estimate, nodes only become fuller."""

    shape: PodShape
    filter: PodFilter
    refuses_for_good: bool
    """Whether a node that refuses a pod also refuses all later ones, because there is neither affinity nor spread."""
    spreads_over_hosts: bool
    candidates: Candidates
    """Opened nodes that may still take a pod, if a refusal need not be final."""
    next_opened: int = 0
    """Index into the opened nodes: all earlier ones are in `candidates` or, if a refusal is final, full."""
    elsewhere: Candidates | None = None
    """Existing nodes that may still take a pod; None until they are needed. Opened nodes are in `candidates`."""


class _Packing:
    """The state of one estimate."""

    def __init__(
        self,
        snapshot: Snapshot,
        groups: Sequence[PodGroup],
        template: NodeTemplate,
        name_prefix: str,
        max_nodes: int,
    ) -> None:
        self._snapshot, self._groups, self._template = snapshot, groups, template
        self._names = free_names(snapshot, name_prefix)
        self._max_nodes = max_nodes
        self._is_at_limit = False
        self._opened: list[NodeInfo] = []
        self._existing_count = len(snapshot.nodes)
        self._roomy: list[NodeInfo] | None = None
        """Existing nodes that have resources for the smallest pod; None until they are needed."""
        self._progress: dict[PodShape, _ShapeProgress] = {}
        self._placed: list[ClusterPod] = []
        self._on_node: dict[str, list[ClusterPod]] = {}
        """Placed pods by node; nodes without any are absent."""
        self._trials: list[tuple[PodShape, NodeInfo, int]] = []
        self._own_shapes = [snapshot.shape(pod) for pod in template.pods]

    def add(self, group: PodGroup) -> None:
        """Place as many pods of a group as possible: on opened nodes, then on further ones."""
        progress = self._progress_of(group.shape)
        if progress.filter.problem is not None:
            return
        taken = self._fill_opened(progress, group.pods)
        if taken < len(group.pods) and not self._is_at_limit:
            self._fill_further(progress, group.pods, taken)

    def take_back(self) -> None:
        """Take all pods from their nodes, the last ones first."""
        while self._trials:
            shape, info, count = self._trials.pop()
            self._snapshot.try_pods(shape, info, -count)

    def result(self) -> Estimate:
        """Return what has been placed."""
        names = {info.node.name for info in self._opened}
        return Estimate(
            node_count=len(self._on_node),
            pods=tuple(self._placed),
            new_nodes=tuple(NewNode(name, tuple(pods)) for name, pods in self._on_node.items() if name in names),
            placed_on_existing=tuple(
                (pod, name) for name, pods in self._on_node.items() if name not in names for pod in pods
            ),
            limit=f"at most {self._max_nodes} nodes may be added" if self._is_at_limit else "",
            opened=len(self._opened),
        )

    def _progress_of(self, shape: PodShape) -> _ShapeProgress:
        known = self._progress.get(shape)
        if known is None:
            judge = PodFilter(self._snapshot, shape)
            over_hosts = any(each.topology_key == HOSTNAME_LABEL for each in shape.scheduling.spread)
            known = _ShapeProgress(shape, judge, not is_passing(shape), over_hosts, Candidates(judge))
            self._progress[shape] = known
        return known

    def _fill_opened(self, progress: _ShapeProgress, pods: Sequence[ClusterPod]) -> int:
        """Place pods on opened nodes by first fit until a pod fits on none; return how many were placed."""
        taken = 0
        if not progress.refuses_for_good:
            while taken < len(pods):
                info = self._first_opened(progress)
                if info is None:
                    break
                self._place(progress, info, (pods[taken],))
                taken += 1
            return taken
        while taken < len(pods) and progress.next_opened < len(self._opened):
            taken += self._fill(progress, self._opened[progress.next_opened], pods, taken)
            if taken < len(pods):
                progress.next_opened += 1
        return taken

    def _fill_further(self, progress: _ShapeProgress, pods: Sequence[ClusterPod], taken: int) -> None:
        """Place the pods, beginning with index `taken`, on the last opened node, or on a new one while that helps."""
        while taken < len(pods):
            if self._opened:
                taken += self._fill(progress, self._opened[-1], pods, taken)
                if taken == len(pods):
                    return
                info = self._elsewhere(progress)
                if info is not None:
                    self._place(progress, info, (pods[taken],))
                    taken += 1
                    continue
                if self._opened[-1].node.name not in self._on_node:
                    return
            if len(self._opened) >= self._max_nodes:
                self._is_at_limit = True
                return
            on_new = self._fill(progress, self._open(), pods, taken)
            if not on_new:
                return
            taken += on_new

    def _fill(self, progress: _ShapeProgress, info: NodeInfo, pods: Sequence[ClusterPod], taken: int) -> int:
        """Place pods on one node, beginning with index `taken`, until it refuses; return how many it took."""
        if progress.refuses_for_good:
            room = progress.filter.room(info, len(pods) - taken)
            if room:
                self._place(progress, info, pods[taken : taken + room])
            return room
        room = 0
        while taken + room < len(pods) and progress.filter.fits(info):
            self._place(progress, info, (pods[taken + room],))
            room += 1
        return room

    def _first_opened(self, progress: _ShapeProgress) -> NodeInfo | None:
        progress.candidates.add(self._opened[progress.next_opened :])
        progress.next_opened = len(self._opened)
        return progress.candidates.first_fit()

    def _elsewhere(self, progress: _ShapeProgress) -> NodeInfo | None:
        """Return another node for a pod that the last opened node refuses because of a spread constraint over hosts.

        Existing nodes are also tried: a new pod in the emptiest domain can make room in all of them.
        """
        if not progress.spreads_over_hosts:
            return None
        last, judge = self._opened[-1], progress.filter
        if judge.refuses_for_good(last) or all(refusal.reason != SPREAD_REFUSAL for refusal in judge.refusals(last)):
            return None
        if progress.elsewhere is None:
            if self._roomy is None:
                existing = islice(self._snapshot.nodes.values(), self._existing_count)  # Opened nodes come last.
                self._roomy = _roomy(existing, [group.shape for group in self._groups])
            roomy = (info for info in self._roomy if has_resources(info, progress.shape))
            progress.elsewhere = Candidates(progress.filter, roomy)
        return progress.elsewhere.first_fit() or self._first_opened(progress)

    def _place(self, progress: _ShapeProgress, info: NodeInfo, pods: Sequence[ClusterPod]) -> None:
        # Filters depend on how many pods of which shape there are, not on which ones.
        self._snapshot.try_pods(progress.shape, info, len(pods))
        self._trials.append((progress.shape, info, len(pods)))
        self._placed.extend(pods)
        self._on_node.setdefault(info.node.name, []).extend(pods)

    def _open(self) -> NodeInfo:
        info = self._snapshot.add_node(new_node(self._template, next(self._names)))
        for shape in self._own_shapes:  # No filter asks for their names.
            self._snapshot.try_pods(shape, info, 1)
            self._trials.append((shape, info, 1))
        self._opened.append(info)
        return info


def is_passing(shape: PodShape) -> bool:
    """Return whether a node that refuses a pod of the shape may take it once further pods are placed."""
    return bool(shape.scheduling.affinity or shape.scheduling.spread)


def _roomy(nodes: Iterable[NodeInfo], shapes: Sequence[PodShape]) -> list[NodeInfo]:
    """Return the nodes that have at least the smallest amount of each resource that the shapes request."""
    resources = {resource for shape in shapes for resource in shape.requests}
    least = {resource: min(shape.requests.get(resource, 0) for shape in shapes) for resource in resources}
    asked = [(resource, amount) for resource, amount in least.items() if amount]
    return [
        info
        for info in nodes
        if all(amount <= info.allocatable.get(name, 0) - info.requested.get(name, 0) for name, amount in asked)
    ]
