"""Simulates removals: pods of a node move to other nodes and stay there, so no free capacity counts twice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from adapter.foundation.cluster.values.constraints import TaintEffect
from adapter.foundation.cluster.values.state import Taint
from recommender.kinds.cluster_size.model.taints import TO_BE_DELETED_TAINT
from recommender.kinds.cluster_size.scale_down.block_free_resources import requested_resources
from recommender.kinds.cluster_size.scale_down.drainability import DrainOutcome, ignores_budgets
from recommender.kinds.cluster_size.scale_down.reasons import BlockingPodReason, KeepReason

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.predicates.node_info import PodKey
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape
    from recommender.kinds.cluster_size.predicates.snapshot import NodeInfo, Snapshot
    from recommender.kinds.cluster_size.scale_down.disruptions import RemainingDisruptions
    from recommender.kinds.cluster_size.scale_down.drainability import DrainRules
    from recommender.kinds.cluster_size.scale_down.pod_places import PodPlaces

ZONE_LABEL: Final = "topology.kubernetes.io/zone"
_DRAINED: Final = Taint(TO_BE_DELETED_TAINT, "", TaintEffect.NO_SCHEDULE)
_TOGETHER: Final = "no other node has room for it beside the pods that move already"

_PodOfShape: TypeAlias = "tuple[ClusterPod, PodShape]"


@dataclass(frozen=True, slots=True)
class Unremovable:
    """Why a node cannot be removed."""

    reason: KeepReason | BlockingPodReason
    detail: str
    pod: ClusterPod | None = None
    """The pod that keeps the node; None if no pod does."""

    def __str__(self) -> str:
        """Return the reason in one line: `NotReplicated: shop/debug has no controller that would recreate it`."""
        return f"{self.reason}: {self.detail}"


@dataclass(frozen=True, slots=True)
class DrainPlan:
    """The moves and waits that the pods of a node need before it can be removed."""

    node: str
    zone: str
    own: tuple[ClusterPod, ...]
    """Pods that run on the node and must move."""
    guests: tuple[ClusterPod, ...]
    """Pending pods that the simulation has placed on the node; they are not evicted but need another place."""
    awaited: tuple[ClusterPod, ...] = ()
    """Pods whose completion is waited for."""

    @property
    def is_empty(self) -> bool:
        """Whether no pod must move."""
        return not self.own and not self.guests

    def leaving_pods(self, snapshot: Snapshot) -> list[ClusterPod]:
        """Return all pods that need another place, including those that earlier removals have moved to the node."""
        here = snapshot.nodes[self.node].pods.values()
        return [*self.own, *(pod for pod in here if pod.node != self.node)]


@dataclass(frozen=True, slots=True)
class Move:
    """A pod that moves to another node."""

    pod: ClusterPod
    source: str
    target: str


def final_nodes(moves: Iterable[Move]) -> dict[PodKey, str]:
    """Return the final nodes of pods, by namespace and name: a pod whose new node is also removed moves again."""
    return {(move.pod.namespace, move.pod.name): move.target for move in moves}


def drain_plan(info: NodeInfo, rules: DrainRules) -> DrainPlan | Unremovable:
    """Return the necessary moves of a node's pods, or the pod that keeps the node. Budgets are not considered."""
    name = info.node.name
    own: list[ClusterPod] = []
    guests: list[ClusterPod] = []
    awaited: list[ClusterPod] = []
    for pod in info.pods.values():
        if pod.node != name:
            guests.append(pod)
            continue
        found = rules.judge(pod)
        if found.outcome is DrainOutcome.BLOCK:
            reason = found.reason or BlockingPodReason.UNEXPECTED_ERROR
            return Unremovable(reason, f"{pod.namespace}/{pod.name} {found.detail}", pod)
        if found.outcome is DrainOutcome.MOVE:
            own.append(pod)
        elif found.outcome is DrainOutcome.WAIT:
            awaited.append(pod)
    return DrainPlan(name, info.node.labels.get(ZONE_LABEL, ""), tuple(own), tuple(guests), tuple(awaited))


class RemovalSimulator:
    """Removes nodes from a snapshot one after another, or several together."""

    def __init__(self, snapshot: Snapshot, places: PodPlaces, disruptions: RemainingDisruptions) -> None:
        self._snapshot = snapshot
        self._places = places
        self._disruptions = disruptions

    def remove(self, plans: Sequence[DrainPlan]) -> tuple[Move, ...] | Unremovable:
        """Remove the nodes, all or none, and return the new nodes of their pods; otherwise, the reason why not.

        After a failure, the snapshot is unchanged.
        """
        waiting = [self._pods(plan) for plan in plans]
        refusal = self._not_allowed(plans) or self._hopeless(waiting)
        if refusal:
            return refusal
        mark = self._snapshot.checkpoint()
        self._places.begin(plan.node for plan in plans)
        moves: list[Move] = []
        for plan, pods in zip(plans, waiting, strict=True):
            failure = self._empty(plan, pods, moves)
            if failure:
                self._snapshot.revert(mark)
                self._places.roll_back()
                return failure
        self._places.commit()
        for plan in plans:
            self._disruptions.take(plan.own)
        return tuple(moves)

    def _not_allowed(self, plans: Sequence[DrainPlan]) -> Unremovable | None:
        own = [pod for plan in plans for pod in plan.own]
        if own and not self._disruptions.are_known:
            pod = own[0]
            detail = f"{pod.namespace}/{pod.name} must not be moved: the PodDisruptionBudgets are not known"
            return Unremovable(BlockingPodReason.NOT_ENOUGH_PDB, detail, pod)
        refusal = self._disruptions.refusal(pod for pod in own if not ignores_budgets(pod))
        if refusal is None:
            return None
        pod, why = refusal
        return Unremovable(
            BlockingPodReason.NOT_ENOUGH_PDB, f"{pod.namespace}/{pod.name} must not be moved: {why}", pod
        )

    def _hopeless(self, waiting: Iterable[Sequence[_PodOfShape]]) -> Unremovable | None:
        """Register all pods' shapes before any pod has left; return a pod that no node could ever take, or None."""
        for pods in waiting:
            for pod, shape in pods:
                why = self._places.prepare(shape)
                if why is not None:
                    return self._no_place(pod, why)
        return None

    def _pods(self, plan: DrainPlan) -> list[_PodOfShape]:
        """Return all pods that need a place with their shapes, the largest first."""
        found = [(pod, self._snapshot.shape(pod)) for pod in plan.leaving_pods(self._snapshot)]
        return sorted(found, key=_size, reverse=True)

    def _empty(self, plan: DrainPlan, pods: Sequence[_PodOfShape], moves: list[Move]) -> Unremovable | None:
        info = self._snapshot.nodes[plan.node]
        is_domain = not all(self._places.is_independent(shape) for _, shape in pods)
        self._snapshot.remove_node(plan.node)
        if is_domain:
            # As in the cluster, a drained node is still a domain of spread constraints, unless they honor its taint.
            self._snapshot.add_node(replace(info.node, taints=(*info.node.taints, _DRAINED)))
        for pod, shape in pods:
            target = self._places.place(pod, shape, plan.zone)
            if target is None:
                return self._limit_reached() if self._places.is_exhausted else self._no_place(pod, _TOGETHER)
            moves.append(Move(pod, plan.node, target))
        if is_domain:
            self._snapshot.remove_node(plan.node)
        return None

    def _no_place(self, pod: ClusterPod, why: str) -> Unremovable:
        detail = f"{pod.namespace}/{pod.name} fits on no other node: {why}"
        return Unremovable(KeepReason.NO_PLACE_TO_MOVE_PODS, detail, pod)

    def _limit_reached(self) -> Unremovable:
        return Unremovable(
            KeepReason.SIMULATION_LIMIT_REACHED, "the simulation has reached the limit of checks for one decision"
        )


def _size(one: _PodOfShape) -> tuple[int, int]:
    return requested_resources(one[1])
