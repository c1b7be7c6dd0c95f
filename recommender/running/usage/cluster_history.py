"""The history of all containers in Prometheus, except their CPU: memory, kills, owners, requests, autoscalers."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.foundation.sources.prometheus.queries.clusters import CLUSTER_LABELS
from recommender.kinds.resources.usage import MOST_BYTES, MOST_CORES, MemoryPeaks
from recommender.kinds.resources.workloads import (
    CPU,
    MEMORY,
    RESOURCES,
    ClusterFacts,
    ObjectOwner,
    ObjectOwners,
    PodContainer,
    SizedWorkload,
    WorkloadAutoscaler,
)
from recommender.running.usage import usage_queries
from recommender.running.usage.prometheus_vectors import Element, doubled_containers, in_turn, vector

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
    from recommender.running.usage.usage_window import SizeWindow

_CONTAINER: Final = ("namespace", "pod", "container")
_MOST: Final = {CPU: MOST_CORES, MEMORY: MOST_BYTES}
_MOST_ASKED_AGAIN: Final = 200
"""The largest number of containers with an impossible peak on a day that are queried again; the peaks of further ones
are unknown on that day."""


class SeveralClustersError(Exception):
    """Prometheus has series of several clusters, whose pods may have the same names. The message says how to choose."""


@dataclass(frozen=True, slots=True)
class ClusterHistory:
    """The containers that existed in a period, with their usage."""

    memory: MemoryPeaks
    running: frozenset[PodContainer]
    """Containers that use memory at the end of the period."""
    kills: tuple[frozenset[PodContainer], ...]
    """The containers that were killed because they were out of memory, by day, the newest day first."""
    facts: ClusterFacts

    @property
    def kill_counts(self) -> Counter[PodContainer]:
        """The number of days on which each container was killed."""
        return Counter(pod for day in self.kills for pod in day)


@dataclass(frozen=True, slots=True)
class ClusterReader:
    """Asks one Prometheus about the containers of some namespaces. Every method may raise PrometheusError."""

    client: PrometheusClient
    window: SizeWindow
    where: str
    """The matcher of the namespaces, with a leading comma; empty for all namespaces."""
    memory_query: str = ""
    """PromQL for the bytes in use by namespace, pod and container; empty for the working sets of cAdvisor."""
    choice: str = "--prometheus-matchers '{}'"
    """How to choose one of several clusters; `{}` stands for the matcher. Messages quote this."""
    replica_sets_seconds: int = 0
    """The length of the period before the end of each day in which ReplicaSets are looked for; 0 means only the end."""
    kills_before_seconds: int = 0
    """The length of the period before each day in which kills are looked for as well: a restart is visible only between
    two samples."""
    doubled: set[PodContainer] = field(default_factory=set, compare=False)
    """Containers with several series, which are left out."""

    def refuse_several_clusters(self) -> None:
        """Raise SeveralClustersError if series name more than one cluster."""
        for metric in (usage_queries.MEMORY_METRIC, usage_queries.POD_OWNER_METRIC):
            found = self._now(usage_queries.clusters(metric, CLUSTER_LABELS, self.where), CLUSTER_LABELS)
            for place, label in enumerate(CLUSTER_LABELS):
                values = sorted({each.labels[place] for each in found})
                if len(values) > 1:
                    named = ", ".join(value or "(none)" for value in values[:5])
                    choice = self.choice.format(f'{label}="{values[-1]}"')
                    raise SeveralClustersError(
                        f"{metric} has series of several clusters ({label}: {named}), and their pods may have the same "
                        f"names: choose one, such as {choice}"
                    )

    def has_usage(self) -> bool:
        """Return whether any container uses memory at the end of the window."""
        now = self.memory_query or usage_queries.memory_usage(self.where)
        return bool(self._memory_at(self.window.end, f"count({now})", ()))

    def resolution(self) -> usage_queries.Resolution | None:
        """Return the finest resolution at which CPU can be queried; None if nothing was scraped before the end."""
        found = self._now(usage_queries.scrapes_in_an_hour(self.where), ())
        in_an_hour = max((each.value for each in found if each.value >= 1), default=None)
        return None if in_an_hour is None else usage_queries.resolution_of(3600.0 / in_an_hour)

    def history(self) -> ClusterHistory:
        """Return the history of the window, which has everything except CPU."""
        now = self.memory_query or usage_queries.memory_usage(self.where)
        running = frozenset(self._containers(self._memory_at(self.window.end, now)))
        kills = tuple(
            frozenset(self._containers(found))
            for found in in_turn(
                lambda day: vector(self.client, self._kills(day[1]), day[0], _CONTAINER),
                self.window.day_ends(),
            )
        )
        return ClusterHistory(self._memory(), running, kills, self._facts())

    def _now(self, query: str, labels: tuple[str, ...]) -> list[Element]:
        return vector(self.client, query, self.window.end, labels)

    def _memory_at(self, at: float, query: str, labels: tuple[str, ...] = _CONTAINER) -> list[Element]:
        """Return the samples of a query of memory, which the configuration may override."""
        return vector(self.client, query, at, labels, is_overridden=bool(self.memory_query))

    def _containers(self, found: Iterable[Element]) -> Iterable[PodContainer]:
        return (PodContainer(*each.labels) for each in found)

    def _kills(self, seconds: int) -> str:
        return usage_queries.kills(self.where, seconds + self.kills_before_seconds)

    def _peaks(self, seconds: int) -> str:
        if self.memory_query:
            return usage_queries.peaks_of(self.memory_query, seconds)
        return usage_queries.memory_peaks(self.where, seconds)

    def _possible_peaks(self, pods: Collection[PodContainer], seconds: int) -> str:
        """Return the query for the peaks of these pods without impossible values; it may return other containers."""
        where = self.where + usage_queries.pods_matcher({each.pod for each in pods})
        usage = self.memory_query or usage_queries.memory_usage(where)
        return usage_queries.peaks_of(usage_queries.below(usage, MOST_BYTES), seconds)

    def _day_peaks(self, day: tuple[float, int]) -> list[Element]:
        """Return the peaks of a day. A value that no machine can have does not hide other samples of that day."""
        end, seconds = day
        found = self._each_once(self._peaks(seconds), end)
        wrong = {pod: each for each in found if each.value >= MOST_BYTES and (pod := PodContainer(*each.labels))}
        if not wrong:
            return found
        asked = sorted(wrong)[:_MOST_ASKED_AGAIN]
        again = self._each_once(self._possible_peaks(asked, seconds), end)
        possible = {pod: each.value for each in again if (pod := PodContainer(*each.labels)) in wrong}
        others = [each for each in found if not each.value >= MOST_BYTES]
        return [*others, *(replace(each, value=possible.get(pod, math.nan)) for pod, each in wrong.items())]

    def _memory(self) -> MemoryPeaks:
        places: dict[PodContainer, int] = {}
        answers = in_turn(self._day_peaks, self.window.day_ends())
        days = [
            {places.setdefault(PodContainer(*each.labels), len(places)): each.value for each in found}
            for found in answers
        ]
        peaks = np.full((self.window.days, len(places)), np.nan)
        for day, values in enumerate(days):
            peaks[day, list(values)] = list(values.values())
        return MemoryPeaks(tuple(places), peaks)

    def _each_once(self, query: str, at: float) -> list[Element]:
        found = self._memory_at(at, query)
        doubled = doubled_containers(query, self._containers(found))
        self.doubled.update(doubled)
        return [each for each in found if PodContainer(*each.labels) not in doubled]

    def _facts(self) -> ClusterFacts:
        requests, limits, inits, targets, follows = in_turn(
            lambda asked: self._now(*asked),
            (
                (
                    usage_queries.stated_amounts_query(usage_queries.REQUESTS_METRIC, self.where),
                    (*_CONTAINER, "resource"),
                ),
                (
                    usage_queries.stated_amounts_query(usage_queries.LIMITS_METRIC, self.where),
                    (*_CONTAINER, "resource"),
                ),
                (usage_queries.init_containers(self.where), _CONTAINER),
                (
                    usage_queries.autoscaler_targets(self.where),
                    ("namespace", "horizontalpodautoscaler", "scaletargetref_kind", "scaletargetref_name"),
                ),
                (
                    usage_queries.autoscaler_metrics(self.where),
                    ("namespace", "horizontalpodautoscaler", "metric_name"),
                ),
            ),
        )
        owners = ObjectOwners(
            pods=self._owners(usage_queries.POD_OWNER_METRIC, "pod", in_days=True),
            replica_sets=self._owners(usage_queries.REPLICA_SET_OWNER_METRIC, "replicaset", in_days=False),
            jobs=self._owners(usage_queries.JOB_OWNER_METRIC, "job_name", in_days=True),
        )
        return ClusterFacts(
            owners=owners,
            requests=_amounts(requests),
            limits=_amounts(limits),
            init_containers=frozenset(self._containers(inits)),
            autoscalers=_autoscalers(targets, follows),
            missing=tuple(_missing_series_notes(owners, bool(requests), targets)),
        )

    def _owners(self, metric: str, label: str, *, in_days: bool) -> dict[tuple[str, str], frozenset[ObjectOwner]]:
        """Return the owners of each object on the newest day on which it is known.

        Without `in_days`, objects are looked up only near the end of each day: ReplicaSets outlive their pods.
        """
        labels = ("namespace", label, "owner_kind", "owner_name")

        def asked(day: tuple[float, int]) -> list[Element]:
            seconds = day[1] if in_days else min(day[1], self.replica_sets_seconds)
            query = usage_queries.owners(metric, label, self.where, seconds or None)
            return vector(self.client, query, day[0], labels)

        owners: dict[tuple[str, str], frozenset[ObjectOwner]] = {}
        for found in in_turn(asked, self.window.day_ends()):
            of_day: dict[tuple[str, str], set[ObjectOwner]] = defaultdict(set)
            for each in found:
                namespace, name, kind, owner = each.labels
                of_day[namespace, name].add(ObjectOwner(kind, owner))
            owners = {name: frozenset(those) for name, those in of_day.items()} | owners
        return owners


def _amounts(found: Iterable[Element]) -> dict[str, dict[PodContainer, float]]:
    amounts: dict[str, dict[PodContainer, float]] = {}
    for each in found:
        namespace, pod, container, resource = each.labels
        # A value that no machine can have is not a measurement. A comparison with NaN is false.
        if 0 <= each.value <= _MOST.get(resource, 0.0):
            amounts.setdefault(resource, {})[PodContainer(namespace, pod, container)] = each.value
    # Some containers have requests, so a resource without any is one that nobody requests.
    return {resource: amounts.get(resource, {}) for resource in RESOURCES} if amounts else {}


_AUTOSCALED: Final = {CPU: "CPU", MEMORY: "memory"}


def _autoscalers(targets: Iterable[Element], follows: Iterable[Element]) -> dict[SizedWorkload, WorkloadAutoscaler]:
    """Return the autoscaler of each workload with the resources that it follows.

    A server may return metrics that were not requested; they are left out.
    """
    resources: dict[tuple[str, str], set[str]] = defaultdict(set)
    for each in follows:
        namespace, name, resource = each.labels
        if resource in _AUTOSCALED:
            resources[namespace, name].add(_AUTOSCALED[resource])
    found: dict[SizedWorkload, WorkloadAutoscaler] = {}
    for each in targets:
        namespace, name, kind, target = each.labels
        if (namespace, name) in resources:
            found[SizedWorkload(namespace, kind, target)] = WorkloadAutoscaler(
                name, tuple(sorted(resources[namespace, name]))
            )
    return found


def _missing_series_notes(owners: ObjectOwners, has_requests: bool, targets: list[Element]) -> Iterable[str]:  # noqa: FBT001 - a fact
    if not owners.pods:
        yield f"{usage_queries.POD_OWNER_METRIC} has no series: each pod stands for itself, as its workload is unknown"
    elif not owners.replica_sets and any(owner.kind == "ReplicaSet" for each in owners.pods.values() for owner in each):
        yield f"{usage_queries.REPLICA_SET_OWNER_METRIC} has no series: the Deployments of ReplicaSets are unknown"
    if not has_requests:
        yield f"{usage_queries.REQUESTS_METRIC} has no series: requests and savings are unknown"
    if owners.pods and not targets:
        yield f"{usage_queries.HPA_METRIC} has no series: if HorizontalPodAutoscalers exist, their targets are not held"
