"""A reserve of CPU and memory as pods that do not exist, and its size at each time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.constraints import NO_CONSTRAINTS
from adapter.foundation.cluster.values.state import ClusterPod, ControllerReference, SchedulingFacts
from adapter.foundation.objects.pod_requests import CPU, MEMORY, PodResources
from recommender.decisions.texts.times import rfc3339
from recommender.kinds.cluster_size.model.resources import amounts_of
from recommender.schedules.last_start import latest_start_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterNode
    from recommender.kinds.cluster_size.model.size_settings import HeadroomSchedule

HEADROOM_NAMESPACE: Final = "tidewatch-headroom"
"""The namespace of the reserve's pods. It need not exist: it only keeps their names apart from those of other pods."""
MOST_CHUNKS: Final = 5000
"""The most parts of a reserve: Cluster Autoscaler injects as many for all CapacityBuffers (`pod-injection-limit`)."""
_OWNER: Final = ControllerReference("tidewatch.io/v1", "Headroom", "headroom", "headroom")
_RESOURCES: Final = (CPU, MEMORY)


@dataclass(frozen=True, slots=True)
class WantedHeadroom:
    """The size of the reserve at one moment."""

    ratio: float
    """Share of the requested CPU and memory."""
    detail: str
    """Why the reserve has this size."""


def headroom_at(ratio: float, schedules: Iterable[HeadroomSchedule], now: float) -> WantedHeadroom:
    """Return the largest of the permanent reserve and the reserves of the schedules that apply now.

    Raises CronError or ZoneInfoNotFoundError for a schedule that the configuration's reader would have rejected.
    """
    wanted = WantedHeadroom(ratio, f"headroom {100 * ratio:.3g}%")
    for schedule in schedules:
        if schedule.headroom_ratio <= wanted.ratio:
            continue
        start = latest_start_of(schedule.cron, schedule.timezone, schedule.duration_seconds, int(now // 60))
        if start is not None and now < start + schedule.duration_seconds:
            end = rfc3339(start + schedule.duration_seconds)
            share = f"headroom {100 * schedule.headroom_ratio:.3g}%"
            detail = f"{share} by {schedule.cron!r} ({schedule.timezone}), until {end}"
            wanted = WantedHeadroom(schedule.headroom_ratio, detail)
    return wanted


@dataclass(frozen=True, slots=True)
class Headroom:
    """A reserve as equal parts."""

    count: int
    chunk: Mapping[str, int]
    """The requests of each part: CPU in millicores, memory in bytes."""


def headroom_pods(ratio: float, pods: Iterable[ClusterPod]) -> tuple[ClusterPod, ...]:
    """Return pods that together request a share of the given pods' requests. They tolerate no taints."""
    return pods_of_headroom(headroom_of(ratio, ((pod.resources.requests, 1) for pod in pods if not pod.has_ended)))


def headroom_of(ratio: float, requests: Iterable[tuple[Mapping[str, int], int]]) -> Headroom:
    """Return a share of these requests, given with their numbers of pods, in parts no larger than a typical pod.

    A typical pod requests the median of CPU and of memory among pods that request any, so that real pods can use the
    reserve, which would be useless in tiny parts on many nodes. If there would be more than 5,000 parts, they are
    larger. The reserve is rounded up.
    """
    asked: dict[str, Counter[int]] = {name: Counter() for name in _RESOURCES}
    for one, count in requests:
        for name, amounts in asked.items():
            amount = one.get(name, 0)
            if amount > 0 and count > 0:
                amounts[amount] += count
    sums = {name: sum(amount * count for amount, count in found.items()) for name, found in asked.items()}
    reserve = {name: _share(ratio, total) for name, total in sums.items()}
    typical = {name: _high_median(found) for name, found in asked.items() if found}
    wanted = max((-(-reserve[name] // amount) for name, amount in typical.items()), default=0)
    count = min(wanted, MOST_CHUNKS)
    if count == 0:
        return Headroom(0, {})
    return Headroom(count, {name: -(-amount // count) for name, amount in reserve.items() if amount > 0})


def pods_of_headroom(headroom: Headroom) -> tuple[ClusterPod, ...]:
    """Return the parts of a reserve as pods."""
    resources = PodResources(requests=headroom.chunk, non_zero_requests=headroom.chunk)
    return tuple(_chunk(f"headroom-{number}", resources) for number in range(headroom.count))


def _high_median(amounts: Counter[int]) -> int:
    """Return the median of the counted amounts; of two middle ones, the larger."""
    place, below = amounts.total() // 2, 0
    for amount in sorted(amounts):
        below += amounts[amount]
        if below > place:
            break
    return amount


def placeable(pods: Iterable[ClusterPod], nodes: Iterable[ClusterNode]) -> tuple[ClusterPod, ...]:
    """Return the pods that request no more CPU and memory than one of these nodes offers when it is empty.

    A pod that no node can ever hold needs no reserve, and must not make the reserve useless for all others. All pods
    count if no node is known.
    """
    largest = largest_offers(nodes)
    return tuple(pod for pod in pods if is_placeable(pod.resources.requests, largest))


def largest_offers(nodes: Iterable[ClusterNode]) -> list[tuple[int, int]]:
    """Return those offers of CPU and memory that no other offer equals or exceeds in both."""
    largest: list[tuple[int, int]] = []
    offers = (amounts_of(node.allocatable) for node in nodes)
    for cpu, memory in sorted({(offer.get(CPU, 0), offer.get(MEMORY, 0)) for offer in offers}, reverse=True):
        if not largest or memory > largest[-1][1]:
            largest.append((cpu, memory))
    return largest


def is_placeable(requests: Mapping[str, int], offers: Sequence[tuple[int, int]]) -> bool:
    """Return whether one of these offers of CPU and memory is as large as the requests, or none is known."""
    wanted_cpu, wanted_memory = requests.get(CPU, 0), requests.get(MEMORY, 0)
    return not offers or any(wanted_cpu <= cpu and wanted_memory <= memory for cpu, memory in offers)


def _share(ratio: float, amount: int) -> int:
    """Return the share, rounded up, without the rounding errors of floats: 10% of 30 is 3."""
    parts = round(ratio * 10**9)
    return -(-amount * parts // 10**9) if parts > 0 else 0


def _chunk(name: str, resources: PodResources) -> ClusterPod:
    labels: Mapping[str, str] = {}
    return ClusterPod(
        namespace=HEADROOM_NAMESPACE,
        name=name,
        uid=name,
        node="",
        labels=labels,
        controller=_OWNER,
        phase="Pending",
        is_terminating=False,
        bound_at=None,
        ended_at=None,
        priority=0,
        resources=resources,
        facts=SchedulingFacts(
            scheduling=NO_CONSTRAINTS,
            annotations={},
            created=None,
            deleted=None,
            grace_seconds=0.0,
            restart_policy="Always",
        ),
    )
