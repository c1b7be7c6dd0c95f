"""Determines which pods keep their node, which move, and which end with it, by Cluster Autoscaler's rules in order.

The first rule that decides wins. The order is that of `simulator/drainability/rules`, with one difference: a pod of
kube-system that is old enough to be moved without a budget still obeys the later rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.pod_owners import is_same_object
from adapter.foundation.cluster.values.pods import WORKLOAD_GROUPS
from adapter.foundation.reports.counts import count_of
from recommender.kinds.cluster_size.scale_down.annotations import SAFE_TO_EVICT, SAFE_TO_EVICT_LOCAL_VOLUMES
from recommender.kinds.cluster_size.scale_down.pod_kinds import is_daemon_set_pod, is_long_terminating, is_mirror_pod
from recommender.kinds.cluster_size.scale_down.reasons import BlockingPodReason, duration_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.cluster.values.state import ClusterPod, ControllerReference, SchedulingFacts
    from adapter.foundation.cluster.values.workloads import WorkloadFacts
    from recommender.kinds.cluster_size.model.size_settings import ScaleDownSettings
    from recommender.kinds.cluster_size.scale_down.disruptions import RemainingDisruptions

_KUBE_SYSTEM: Final = "kube-system"
_WITH_REPLICAS: Final = frozenset({"ReplicationController", "ReplicaSet"})
_LISTED_GROUPS: Final = {
    "ReplicationController": frozenset({""}),
    "ReplicaSet": WORKLOAD_GROUPS,
    "Job": frozenset({"batch"}),
    "StatefulSet": WORKLOAD_GROUPS,
    "DaemonSet": WORKLOAD_GROUPS,
}
"""Kinds whose controllers are looked up, each with the only API groups that count for it. An owner of another group
with the same kind proves nothing: anyone who can create pods may write it."""
_REPLICATED: Final = frozenset({"ReplicationController", "ReplicaSet", "Job", "StatefulSet"})


class DrainOutcome(Enum):
    """The fate of a pod when its node is removed."""

    SKIP = auto()
    """The pod is ending already, or belongs to the node."""
    DAEMON_SET = auto()
    """The pod ends with its node, and its DaemonSet does not replace it."""
    MOVE = auto()
    """The pod's controller creates another one, for which there must be a place."""
    WAIT = auto()
    """The node is removed after the pod has completed."""
    BLOCK = auto()
    """The pod keeps its node."""


@dataclass(frozen=True, slots=True)
class Drainability:
    """The outcome for one pod, and why."""

    outcome: DrainOutcome
    reason: BlockingPodReason | None = None
    """The reason for which a pod keeps its node."""
    detail: str = ""
    """Why the pod keeps its node, as the rest of a sentence that begins with the pod's name."""


_SKIP: Final = Drainability(DrainOutcome.SKIP)
_DAEMON_SET: Final = Drainability(DrainOutcome.DAEMON_SET)
_MOVE: Final = Drainability(DrainOutcome.MOVE)
_WAIT: Final = Drainability(DrainOutcome.WAIT)


class DrainRules:
    """The rules, applied to the facts of one moment."""

    def __init__(
        self,
        settings: ScaleDownSettings,
        workloads: Iterable[WorkloadFacts],
        disruptions: RemainingDisruptions,
        now: float,
        assumed_controllers: frozenset[str] = frozenset(),
    ) -> None:
        """Assume that controllers of the kinds in `assumed_controllers` exist."""
        self._settings = settings
        self._disruptions = disruptions
        self._now = now
        self._assumed = assumed_controllers
        self._workloads = {(one.kind, one.namespace, one.name): one for one in workloads}

    def judge(self, pod: ClusterPod) -> Drainability:
        """Return the outcome of the first eleven rules for a pod.

        The twelfth rule depends on the pods that are evicted together: `RemainingDisruptions.refusal`.
        """
        facts = pod.facts
        if facts is None:
            return _DAEMON_SET if is_daemon_set_pod(pod) else _unreadable("its annotations and volumes are not known")
        if facts.problem:
            return _unreadable(facts.problem)
        if is_mirror_pod(pod) or is_long_terminating(pod, self._now):
            return _SKIP
        return (
            self._without_controller(pod, facts)
            or _decided_by_kind(pod, facts)
            or self._not_replicated(pod)
            or self._unmovable_system_pod(pod, facts)
            or self._not_safe(facts)
            or self._on_local_storage(facts)
            or _MOVE
        )

    def _without_controller(self, pod: ClusterPod, facts: SchedulingFacts) -> Drainability | None:
        """Rule 3: the controller does not exist any more, or has too few replicas for its pods to be moved."""
        if facts.owner_problem:
            return _blocking_pod(
                BlockingPodReason.CONTROLLER_NOT_FOUND, f"has no usable controller: {facts.owner_problem}"
            )
        owner = pod.controller
        if owner is None or not self._settings.skip_nodes_with_custom_controller_pods or not _is_listed(owner):
            return None
        known = self._workloads.get((owner.kind, pod.namespace, owner.name))
        if known is None and owner.kind in self._assumed:
            return None
        if known is None or not is_same_object(owner.uid, known.uid):
            return _blocking_pod(
                BlockingPodReason.CONTROLLER_NOT_FOUND,
                f"is controlled by {owner.kind} {pod.namespace}/{owner.name}, which is not among the known workloads",
            )
        replicas, least = known.replicas, self._settings.min_replica_count
        if owner.kind in _WITH_REPLICAS and replicas is not None and replicas < least:
            return _blocking_pod(
                BlockingPodReason.MIN_REPLICAS_REACHED,
                f"is one of {count_of(replicas, 'replica')} of {owner.kind} {owner.name}, and minReplicaCount is "
                f"{least}",
            )
        return None

    def _not_replicated(self, pod: ClusterPod) -> Drainability | None:
        """Rule 8: nothing would recreate the pod."""
        owner = pod.controller
        if owner is None:
            return _blocking_pod(BlockingPodReason.NOT_REPLICATED, "has no controller that would recreate it")
        if self._settings.skip_nodes_with_custom_controller_pods and not is_replicated(owner):
            return _blocking_pod(
                BlockingPodReason.NOT_REPLICATED,
                f"is controlled by {owner.kind} {owner.name}, which is not one of {', '.join(sorted(_REPLICATED))} "
                "(skipNodesWithCustomControllerPods)",
            )
        return None

    def _unmovable_system_pod(self, pod: ClusterPod, facts: SchedulingFacts) -> Drainability | None:
        """Rule 9: a young pod of kube-system without a budget."""
        if pod.namespace != _KUBE_SYSTEM or not self._settings.skip_nodes_with_system_pods:
            return None
        if self._disruptions.has_budget(pod):
            return None
        least = self._settings.system_pod_seconds
        if facts.created is not None and facts.created + least < self._now:
            return None
        return _blocking_pod(
            BlockingPodReason.UNMOVABLE_KUBE_SYSTEM_POD,
            f"is a pod of kube-system without a PodDisruptionBudget and not older than {duration_of(least)}",
        )

    def _not_safe(self, facts: SchedulingFacts) -> Drainability | None:
        """Rule 10: an annotation of the pod forbids moving it."""
        if facts.annotations.get(SAFE_TO_EVICT) != "false":
            return None
        return _blocking_pod(
            BlockingPodReason.NOT_SAFE_TO_EVICT_ANNOTATION, f"has the annotation {SAFE_TO_EVICT}: false"
        )

    def _on_local_storage(self, facts: SchedulingFacts) -> Drainability | None:
        """Rule 11: the pod would lose the content of a volume."""
        volumes = facts.scheduling.local_volumes
        if not volumes or not self._settings.skip_nodes_with_local_storage:
            return None
        lost = lost_volume(volumes, facts.annotations)
        return _blocking_pod(BlockingPodReason.LOCAL_STORAGE_REQUESTED, lost) if lost else None


def _is_listed(owner: ControllerReference) -> bool:
    """Return whether controllers of this kind are looked up."""
    return owner.group in _LISTED_GROUPS.get(owner.kind, ())


def is_replicated(owner: ControllerReference) -> bool:
    """Return whether a controller of Kubernetes recreates pods elsewhere that are evicted."""
    return owner.kind in _REPLICATED and _is_listed(owner)


def lost_volume(volumes: Iterable[tuple[str, str]], annotations: Mapping[str, str]) -> str:
    """Return which of the local volumes a pod would lose, as the rest of a sentence; empty if its annotation lists all.

    Each volume has its name and its kind.
    """
    listed = annotations.get(SAFE_TO_EVICT_LOCAL_VOLUMES, "")
    harmless = {name.strip() for name in listed.split(",")}
    for name, kind in volumes:
        if name not in harmless:
            return f"has the {kind} volume {name}, which the annotation {SAFE_TO_EVICT_LOCAL_VOLUMES} does not list"
    return ""


def _decided_by_kind(pod: ClusterPod, facts: SchedulingFacts) -> Drainability | None:
    """Rules 4 to 7: pods of DaemonSets, pods that may move in any case, and those the removal waits for."""
    if is_daemon_set_pod(pod):
        return _DAEMON_SET
    if ignores_budgets(pod):
        return _MOVE
    return _WAIT if facts.annotations.get(SAFE_TO_EVICT) == "on-completion" else None


def ignores_budgets(pod: ClusterPod) -> bool:
    """Whether rule 5 or 6 decides that the pod moves, so that later rules, including budgets, do not keep it."""
    return pod.has_ended or (pod.facts is not None and pod.facts.annotations.get(SAFE_TO_EVICT) == "true")


def _blocking_pod(reason: BlockingPodReason, detail: str) -> Drainability:
    return Drainability(DrainOutcome.BLOCK, reason, detail)


def _unreadable(why: str) -> Drainability:
    return _blocking_pod(BlockingPodReason.UNEXPECTED_ERROR, f"must not be moved: {why}")
