"""Pods by node and by namespace, in a form that placement needs and that is cheap to compare with an earlier one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adapter.foundation.objects.grouping import group_values

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from adapter.foundation.cluster.values.state import ClusterPod


@dataclass(frozen=True, slots=True)
class PlacedPods:
    """The pods that have not ended, at one moment: bound pods by place, and pending ones.

    The tuple of a node or namespace stays the same object as long as its pods are unchanged, so `is` finds what has
    changed between two moments.
    """

    by_node: Mapping[str, tuple[ClusterPod, ...]] = field(default_factory=dict)
    by_namespace: Mapping[str, tuple[ClusterPod, ...]] = field(default_factory=dict)
    last_ended_at: Mapping[str, float] = field(default_factory=dict)
    """Unix seconds at which the last pod of a node ended or was deleted, by node; nodes without one are absent."""
    pending: tuple[ClusterPod, ...] = ()
    """Pods that are not bound."""

    def reuse_tuples(self, before: PlacedPods) -> PlacedPods:
        """Return the same pods, but reuse the earlier tuple of each place that has equal pods in any order."""
        return PlacedPods(
            _reuse_equal(before.by_node, self.by_node),
            _reuse_equal(before.by_namespace, self.by_namespace),
            self.last_ended_at,
            self.pending,
        )


def pods_by_place(pods: Iterable[ClusterPod]) -> PlacedPods:
    """Return the pods of a list by place. For pods that have ended, only the time at which they ended is kept."""
    pods = tuple(pods)
    ended: dict[str, float] = {}
    for pod in pods:
        if pod.node and pod.has_ended and pod.ended_at is not None:
            ended[pod.node] = max(ended.get(pod.node, pod.ended_at), pod.ended_at)
    active = [pod for pod in pods if not pod.has_ended]
    return PlacedPods(
        _tuples((pod.node, pod) for pod in active if pod.node),
        _tuples((pod.namespace, pod) for pod in active if pod.node),
        ended,
        tuple(pod for pod in active if not pod.node),
    )


def _tuples(pods: Iterable[tuple[str, ClusterPod]]) -> dict[str, tuple[ClusterPod, ...]]:
    return {place: tuple(found) for place, found in group_values(pods).items()}


def _reuse_equal(
    before: Mapping[str, tuple[ClusterPod, ...]], now: Mapping[str, tuple[ClusterPod, ...]]
) -> dict[str, tuple[ClusterPod, ...]]:
    return {place: known if _same(known := before.get(place, ()), pods) else pods for place, pods in now.items()}


def _same(pods: tuple[ClusterPod, ...], others: tuple[ClusterPod, ...]) -> bool:
    if len(pods) != len(others):
        return False
    if pods == others:
        return True
    named = {(pod.namespace, pod.name): pod for pod in others}
    return all(named.get((pod.namespace, pod.name)) == pod for pod in pods)


def pod_problems(problems: Collection[str]) -> tuple[str, ...]:
    """Return one sentence with the number of pods that are left out and the first reasons; nothing if none are."""
    if not problems:
        return ()
    return (f"pods that cannot be used are left out ({len(problems)}); the first: {next(iter(problems))}",)
