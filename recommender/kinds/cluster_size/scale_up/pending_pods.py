"""Selects the pods that need a node, and names those left out (Cluster Autoscaler's list of unschedulable pods)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.constraints import NO_CONSTRAINTS
from adapter.foundation.objects.durations import DurationError, parse_go_duration
from adapter.foundation.objects.grouping import group_values
from recommender.kinds.cluster_size.model.answer import UnschedulablePods
from recommender.kinds.cluster_size.model.pod_places import pod_name, unbound
from recommender.kinds.cluster_size.scale_down.pod_kinds import is_daemon_set_pod, is_mirror_pod

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adapter.foundation.cluster.values.constraints import PodScheduling
    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.kinds.cluster_size.model.size_situation import ClusterSituation

DELAY_ANNOTATION: Final = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay"
SETTLING_SECONDS: Final = 2.0
"""While all pods are younger than this, more of them are probably about to come (`unschedulablePodTimeBuffer`)."""
_REPEATED: Final = "another pod has the same namespace and name"
_EXPENDABLE: Final = "is below expendablePodsPriorityCutoff: no node is added for it"


@dataclass(frozen=True, slots=True)
class PendingPods:
    """Pods by their treatment in a decision."""

    pods: tuple[ClusterPod, ...]
    """The pods without a node, and those on a node that is being deleted."""
    left_out: tuple[UnschedulablePods, ...]
    """Pods for which no node is sought, with the reason."""
    expendable: tuple[ClusterPod, ...]
    """Bound pods whose place counts as free."""
    drained: tuple[ClusterPod, ...]
    """Bound pods of nodes that are being deleted; copies of them without a node are among `pods`."""


def pending_pods(situation: ClusterSituation, settings: ClusterSizeSettings) -> PendingPods:
    """Return the pods that need a place, including future ones, and those that do not count."""
    deleting = deleting_nodes(situation)
    waiting: list[ClusterPod] = []
    expendable: list[ClusterPod] = []
    drained: list[ClusterPod] = []
    unimportant: list[tuple[ClusterPod, str]] = []
    for pod in situation.pods:
        if pod.has_ended:
            continue
        is_expendable = pod.priority < settings.expendable_pods_priority_cutoff
        if pod.node:
            if is_expendable:
                expendable.append(pod)
            elif pod.node in deleting and _is_recreated_elsewhere(pod):
                drained.append(pod)
        elif pod.is_terminating:
            continue
        elif not is_expendable:
            waiting.append(pod)
        elif not is_daemon_set_pod(pod):
            unimportant.append((pod, f"its priority of {pod.priority} {_EXPENDABLE}"))
    moved = [unbound(pod) for pod in drained]
    once, repeated = _each_once([*waiting, *situation.future_pods], situation.pods)
    taken, refused = _that_count(once, settings.scheduler_names)
    left_out = left_out_pods([*refused, *unimportant, *((pod, _REPEATED) for pod in repeated)])
    return PendingPods((*taken, *moved), left_out, tuple(expendable), tuple(drained))


def deleting_nodes(situation: ClusterSituation) -> frozenset[str]:
    """Return the nodes that are being deleted."""
    of_groups = (name for group in situation.groups.groups for name in group.deleting)
    return frozenset(of_groups).union(node.name for node in situation.nodes if node.is_terminating)


@dataclass(frozen=True, slots=True)
class YoungPods:
    """Pods that do not count yet."""

    names: frozenset[tuple[str, str]] = frozenset()
    """Namespace and name of each pod."""
    until: float | None = None
    """When the first of them counts, in Unix seconds, always later than now; None without such pods."""


def young_pods(pods: Sequence[ClusterPod], situation: ClusterSituation, settings: ClusterSizeSettings) -> YoungPods:
    """Return the pods that do not count yet; none if the decision does not wait for timers.

    A pod is young while it is younger than the configured delay, which its annotation can only lengthen; and all pods
    are young while even the oldest is younger than `SETTLING_SECONDS`. Future pods are never young.
    """
    if not situation.waits:
        return YoungPods()
    future = {(pod.namespace, pod.name) for pod in situation.future_pods}
    created = {
        key: (time, time + _delay_seconds(pod, settings.new_pod_scale_up_delay_seconds))
        for pod in pods
        if (key := (pod.namespace, pod.name)) not in future and (time := _created_at(pod)) is not None
    }
    is_settled = len(created) < len(pods) or not created
    settled = -math.inf if is_settled else min(time for time, _ in created.values()) + SETTLING_SECONDS
    waiting = {key: counts for key, (_, old) in created.items() if situation.now < (counts := max(old, settled))}
    return YoungPods(frozenset(waiting), min(waiting.values(), default=None))


def only_by_annotation(pod: ClusterPod, situation: ClusterSituation, settings: ClusterSizeSettings) -> bool:
    """Whether only its annotation delays a pod, because it is older than the delay of all pods."""
    created = _created_at(pod)
    least = max(SETTLING_SECONDS, settings.new_pod_scale_up_delay_seconds)
    return created is not None and situation.now - created >= least


def _created_at(pod: ClusterPod) -> float | None:
    return None if pod.facts is None else pod.facts.created


def _delay_seconds(pod: ClusterPod, least: float) -> float:
    text = "" if pod.facts is None else pod.facts.annotations.get(DELAY_ANNOTATION, "")
    if not text:
        return least
    try:
        return max(least, parse_go_duration(text))
    except DurationError:
        return least


def _is_recreated_elsewhere(pod: ClusterPod) -> bool:
    """Whether a controller recreates the pod elsewhere: mirror pods and pods of DaemonSets belong to their node."""
    stays = is_daemon_set_pod(pod) or is_mirror_pod(pod)
    return pod.controller is not None and not stays and not pod.is_terminating


def _each_once(pods: Sequence[ClusterPod], present: Iterable[ClusterPod]) -> tuple[list[ClusterPod], list[ClusterPod]]:
    """Return the pods with a namespace and name that no bound pod of `present` and no earlier pod has, and the others.

    Most bound pods are left out by their names alone, since there may be hundreds of thousands of them.
    """
    names = {pod.name for pod in pods}
    seen = {(pod.namespace, pod.name) for pod in present if pod.name in names and pod.node and not pod.has_ended}
    once: list[ClusterPod] = []
    repeated: list[ClusterPod] = []
    for pod in pods:
        key = (pod.namespace, pod.name)
        (repeated if key in seen else once).append(pod)
        seen.add(key)
    return once, repeated


def _that_count(
    pods: Iterable[ClusterPod], scheduler_names: frozenset[str]
) -> tuple[list[ClusterPod], list[tuple[ClusterPod, str]]]:
    taken: list[ClusterPod] = []
    refused: list[tuple[ClusterPod, str]] = []
    for pod in pods:
        scheduling = _scheduling_of(pod)
        if scheduling.is_gated:
            refused.append((pod, "it has a scheduling gate: no node is added for it until the gate is removed"))
        elif scheduler_names and scheduling.scheduler_name not in scheduler_names:
            refused.append((pod, f"the scheduler {scheduling.scheduler_name} is not among schedulerNames"))
        else:
            taken.append(pod)
    return taken, refused


def _scheduling_of(pod: ClusterPod) -> PodScheduling:
    return NO_CONSTRAINTS if pod.facts is None else pod.facts.scheduling


def left_out_pods(pods: Iterable[tuple[ClusterPod, str]]) -> tuple[UnschedulablePods, ...]:
    """Return pods with their reasons, grouped by reason."""
    by_reason = group_values((reason, pod_name(pod)) for pod, reason in pods)
    return tuple(UnschedulablePods(tuple(names), {}, reason, is_left_out=True) for reason, names in by_reason.items())
