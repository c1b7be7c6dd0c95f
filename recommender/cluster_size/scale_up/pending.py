"""Which pods need a place, and which take no part (Cluster Autoscaler's list of unschedulable pods)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from adapter.cluster.scheduling.constraints import DEFAULT_SCHEDULER, NO_CONSTRAINTS
from adapter.objects.durations import DurationError, parse_go_duration
from recommender.cluster_size.model.answer import PodName, UnschedulablePods
from recommender.cluster_size.scale_down.pod_kinds import is_daemon_set_pod, is_mirror_pod

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adapter.cluster.scheduling.constraints import PodScheduling
    from adapter.cluster.state import ClusterPod
    from recommender.cluster_size.model.settings import ClusterSizeSettings
    from recommender.cluster_size.model.situation import ClusterSituation

DELAY_ANNOTATION: Final = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay"
SETTLING_SECONDS: Final = 2.0
"""While all pods are younger, more of them are probably about to come (`unschedulablePodTimeBuffer`)."""
_REPEATED: Final = "another pod has the same namespace and name"


@dataclass(frozen=True, slots=True)
class PendingPods:
    """Pods by what is to be done about them."""

    pods: tuple[ClusterPod, ...]
    """Without a node, or on one that is being deleted."""
    left_out: tuple[UnschedulablePods, ...]
    """Pods for which no node is sought, with the reason."""
    expendable: tuple[ClusterPod, ...]
    """Bound pods whose place counts as free."""
    drained: tuple[ClusterPod, ...]
    """Bound pods of nodes that are being deleted; copies of them without a node are among `pods`."""


def pending_pods(situation: ClusterSituation, settings: ClusterSizeSettings) -> PendingPods:
    """Return the pods that need a place, those of the future included, and what does not count."""
    deleting = deleting_nodes(situation)
    waiting: list[ClusterPod] = []
    expendable: list[ClusterPod] = []
    drained: list[ClusterPod] = []
    bound: set[tuple[str, str]] = set()
    for pod in situation.pods:
        if pod.has_ended:
            continue
        is_expendable = pod.priority < settings.expendable_pods_priority_cutoff
        if pod.node:
            bound.add((pod.namespace, pod.name))
            if is_expendable:
                expendable.append(pod)
            elif pod.node in deleting and _comes_back(pod):
                drained.append(pod)
        elif not is_expendable and not pod.is_terminating:
            waiting.append(pod)
    moved = [replace(pod, node="") for pod in drained]
    once, repeated = _each_once([*waiting, *situation.future_pods], bound)
    taken, refused = _of_the_default_scheduler(once)
    left_out = left_out_pods([*refused, *((pod, _REPEATED) for pod in repeated)])
    return PendingPods((*taken, *moved), left_out, tuple(expendable), tuple(drained))


def deleting_nodes(situation: ClusterSituation) -> frozenset[str]:
    """Return the nodes that are being deleted."""
    of_groups = (name for group in situation.groups.groups for name in group.deleting)
    return frozenset(of_groups).union(node.name for node in situation.nodes if node.is_terminating)


def too_young(
    pods: Sequence[ClusterPod], situation: ClusterSituation, settings: ClusterSizeSettings
) -> frozenset[tuple[str, str]]:
    """Return namespace and name of the pods that do not count yet, if anything is waited for.

    They are younger than the configured delay, or than the pod's annotation, which can only lengthen it; and all of
    them while the oldest is only about to settle. Pods of the future are never young.
    """
    if not situation.waits:
        return frozenset()
    future = {(pod.namespace, pod.name) for pod in situation.future_pods}
    ages = {
        key: (situation.now - created, _delay_seconds(pod, settings.new_pod_scale_up_delay_seconds))
        for pod in pods
        if (key := (pod.namespace, pod.name)) not in future and (created := _created(pod)) is not None
    }
    if len(ages) == len(pods) and ages and max(age for age, _ in ages.values()) < SETTLING_SECONDS:
        return frozenset(ages)
    return frozenset(key for key, (age, delay) in ages.items() if age < delay)


def _created(pod: ClusterPod) -> float | None:
    return None if pod.facts is None else pod.facts.created


def _delay_seconds(pod: ClusterPod, least: float) -> float:
    text = "" if pod.facts is None else pod.facts.annotations.get(DELAY_ANNOTATION, "")
    if not text:
        return least
    try:
        return max(least, parse_go_duration(text))
    except DurationError:
        return least


def _comes_back(pod: ClusterPod) -> bool:
    """Whether a controller makes the pod anew elsewhere: mirror pods and pods of DaemonSets belong to their node."""
    stays = is_daemon_set_pod(pod) or is_mirror_pod(pod)
    return pod.controller is not None and not stays and not pod.is_terminating


def _each_once(pods: Iterable[ClusterPod], bound: set[tuple[str, str]]) -> tuple[list[ClusterPod], list[ClusterPod]]:
    seen = set(bound)
    once: list[ClusterPod] = []
    repeated: list[ClusterPod] = []
    for pod in pods:
        key = (pod.namespace, pod.name)
        (repeated if key in seen else once).append(pod)
        seen.add(key)
    return once, repeated


def _of_the_default_scheduler(
    pods: Iterable[ClusterPod],
) -> tuple[list[ClusterPod], list[tuple[ClusterPod, str]]]:
    taken: list[ClusterPod] = []
    refused: list[tuple[ClusterPod, str]] = []
    for pod in pods:
        scheduling = _scheduling(pod)
        if scheduling.is_gated:
            refused.append((pod, "a scheduling gate keeps it back: no node is sought before the gate is removed"))
        elif scheduling.scheduler_name != DEFAULT_SCHEDULER:
            refused.append((pod, f"the scheduler {scheduling.scheduler_name} places it, whose rules are not known"))
        else:
            taken.append(pod)
    return taken, refused


def _scheduling(pod: ClusterPod) -> PodScheduling:
    return NO_CONSTRAINTS if pod.facts is None else pod.facts.scheduling


def left_out_pods(pods: Iterable[tuple[ClusterPod, str]]) -> tuple[UnschedulablePods, ...]:
    """Return pods with their reasons, those with the same one together."""
    by_reason: defaultdict[str, list[PodName]] = defaultdict(list)
    for pod, reason in pods:
        by_reason[reason].append(PodName(pod.namespace, pod.name))
    return tuple(UnschedulablePods(tuple(names), {}, reason) for reason, names in by_reason.items())
