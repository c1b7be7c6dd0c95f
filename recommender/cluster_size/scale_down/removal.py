"""The simulation of removals: pods of a node move to other nodes and stay there, so that no gap counts twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.objects.pod_requests import CPU, MEMORY
from recommender.cluster_size.scale_down.drainability import DrainOutcome, ignores_budgets
from recommender.cluster_size.scale_down.reasons import BlockingPodReason, KeepReason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.cluster.predicates.snapshot import NodeInfo, Snapshot
    from adapter.cluster.state import ClusterPod
    from recommender.cluster_size.scale_down.disruptions import RemainingDisruptions
    from recommender.cluster_size.scale_down.drainability import DrainRules
    from recommender.cluster_size.scale_down.places import Places

ZONE_LABEL: Final = "topology.kubernetes.io/zone"


@dataclass(frozen=True, slots=True)
class Unremovable:
    """Why a node cannot go."""

    reason: KeepReason | BlockingPodReason
    detail: str
    pod: ClusterPod | None = None
    """The pod that keeps it."""

    def __str__(self) -> str:
        """`NotReplicated: shop/debug has no controller that would make it again`."""
        return f"{self.reason}: {self.detail}"


@dataclass(frozen=True, slots=True)
class DrainPlan:
    """What the pods of a node need before it can go."""

    node: str
    zone: str
    own: tuple[ClusterPod, ...]
    """Pods that run on it and must move."""
    guests: tuple[ClusterPod, ...]
    """Pending pods that the simulation has placed on it; they are not evicted, but need another place."""
    awaited: tuple[ClusterPod, ...] = ()
    """Pods whose completion is waited for."""

    @property
    def is_empty(self) -> bool:
        """Whether no pod must move."""
        return not self.own and not self.guests


@dataclass(frozen=True, slots=True)
class Move:
    """A pod that goes to another node."""

    pod: ClusterPod
    source: str
    target: str


def drain_plan(info: NodeInfo, rules: DrainRules) -> DrainPlan | Unremovable:
    """Return what must be done with the pods of a node, or the pod that keeps it. Budgets are not looked at."""
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
    """Removes nodes from a snapshot one after another, or several as one."""

    def __init__(self, snapshot: Snapshot, places: Places, disruptions: RemainingDisruptions) -> None:
        self._snapshot = snapshot
        self._places = places
        self._disruptions = disruptions

    def remove(self, plans: Sequence[DrainPlan]) -> tuple[Move, ...] | Unremovable:
        """Remove the nodes, all or none, and return where their pods went; otherwise why not.

        Where it fails the snapshot is as before.
        """
        refusal = self._not_allowed(plans) or self._hopeless(plans)
        if refusal:
            return refusal
        mark = self._snapshot.checkpoint()
        self._places.begin(plan.node for plan in plans)
        moves: list[Move] = []
        for plan in plans:
            failure = self._empty(plan, moves)
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

    def _hopeless(self, plans: Sequence[DrainPlan]) -> Unremovable | None:
        """Learn the shapes of all pods before one has left; return a pod that could not be scheduled anywhere."""
        for plan in plans:
            for pod in self._pods(plan):
                why = self._places.prepare(self._snapshot.shape(pod))
                if why:
                    return self._no_place(pod, why)
        return None

    def _pods(self, plan: DrainPlan) -> tuple[ClusterPod, ...]:
        """Return all pods that need a place: also those which earlier removals have moved to the node."""
        here = self._snapshot.nodes[plan.node].pods
        moved = [pod for pod in here.values() if pod.node != plan.node]
        return (*plan.own, *moved) if moved else plan.own

    def _empty(self, plan: DrainPlan, moves: list[Move]) -> Unremovable | None:
        pods = sorted(self._pods(plan), key=_size, reverse=True)
        for pod in pods:
            self._snapshot.evict(pod)
        for pod in pods:
            target = self._places.place(pod, self._snapshot.shape(pod), plan.zone)
            if target is None:
                return self._exhausted() if self._places.is_exhausted else self._no_place(pod, "")
            moves.append(Move(pod, plan.node, target))
        self._snapshot.remove_node(plan.node)
        return None

    def _no_place(self, pod: ClusterPod, why: str) -> Unremovable:
        detail = why or "none of the other nodes can take it together with the pods that move already"
        return Unremovable(
            KeepReason.NO_PLACE_TO_MOVE_PODS, f"{pod.namespace}/{pod.name} finds no other place: {detail}", pod
        )

    def _exhausted(self) -> Unremovable:
        return Unremovable(
            KeepReason.SIMULATION_LIMIT_REACHED, "the simulation has made as many checks as one decision may make"
        )


def _size(pod: ClusterPod) -> tuple[int, int]:
    requests = pod.resources.requests
    return requests.get(CPU, 0), requests.get(MEMORY, 0)
