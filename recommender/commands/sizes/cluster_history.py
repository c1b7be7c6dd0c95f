"""The history of all containers in Prometheus, except their CPU: memory, kills, owners, requests, autoscalers."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.foundation.sources.prometheus.clusters import CLUSTER_LABELS
from recommender.commands.sizes import size_queries
from recommender.commands.sizes.prometheus_vectors import in_turn, vector
from recommender.kinds.resources.usage import MemoryPeaks
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

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.foundation.sources.prometheus.client import PrometheusClient
    from recommender.commands.sizes.prometheus_vectors import Element
    from recommender.commands.sizes.size_window import SizeWindow

_CONTAINER: Final = ("namespace", "pod", "container")


class SeveralClustersError(Exception):
    """The store holds several clusters, whose pods may have the same names. The message says how to choose one."""


@dataclass(frozen=True, slots=True)
class ClusterHistory:
    """The containers of a time, and what is known of them."""

    memory: MemoryPeaks
    running: frozenset[PodContainer]
    """Containers that use memory at the end."""
    kills: tuple[frozenset[PodContainer], ...]
    """By day: containers that were killed because they were out of memory."""
    facts: ClusterFacts

    @property
    def kill_counts(self) -> Counter[PodContainer]:
        """On how many days each container was killed."""
        return Counter(pod for day in self.kills for pod in day)


@dataclass(frozen=True, slots=True)
class ClusterReader:
    """Asks one Prometheus about the containers of some namespaces. Every method raises PrometheusError."""

    client: PrometheusClient
    window: SizeWindow
    where: str
    """Matcher of the namespaces, with the comma before it."""

    def refuse_several_clusters(self) -> None:
        """Raise SeveralClustersError if series name more than one cluster."""
        for metric in (size_queries.MEMORY_METRIC, size_queries.POD_OWNER_METRIC):
            found = self._now(size_queries.clusters(metric, CLUSTER_LABELS, self.where), CLUSTER_LABELS)
            for place, label in enumerate(CLUSTER_LABELS):
                values = sorted({each.labels[place] for each in found})
                if len(values) > 1:
                    named = ", ".join(value or "(none)" for value in values[:5])
                    choice = f"--prometheus-matchers '{label}=\"{values[-1]}\"'"
                    raise SeveralClustersError(
                        f"{metric} has series of several clusters ({label}: {named}), and their pods may have the same "
                        f"names: choose one, such as {choice}"
                    )

    def resolution(self) -> size_queries.Resolution:
        """Return how finely CPU can be asked for."""
        found = self._now(size_queries.scrapes_in_an_hour(self.where), ())
        in_an_hour = max((each.value for each in found if each.value >= 1), default=120.0)
        return size_queries.resolution_of(3600.0 / in_an_hour)

    def history(self) -> ClusterHistory:
        """Return everything except CPU."""
        running = frozenset(self._containers(self._now(size_queries.memory_usage(self.where), _CONTAINER)))
        kills = tuple(
            frozenset(self._containers(found))
            for found in in_turn(
                lambda day: vector(self.client, size_queries.kills(self.where, day[1]), day[0], _CONTAINER),
                self.window.day_ends(),
            )
        )
        return ClusterHistory(self._memory(), running, kills, self._facts())

    def _now(self, query: str, labels: tuple[str, ...]) -> list[Element]:
        return vector(self.client, query, self.window.end, labels)

    def _containers(self, found: Iterable[Element]) -> Iterable[PodContainer]:
        return (PodContainer(*each.labels) for each in found)

    def _memory(self) -> MemoryPeaks:
        places: dict[PodContainer, int] = {}
        answers = in_turn(
            lambda day: vector(self.client, size_queries.memory_peaks(self.where, day[1]), day[0], _CONTAINER),
            self.window.day_ends(),
        )
        days = [
            {places.setdefault(PodContainer(*each.labels), len(places)): each.value for each in found}
            for found in answers
        ]
        peaks = np.full((self.window.days, len(places)), np.nan)
        for day, values in enumerate(days):
            peaks[day, list(values)] = list(values.values())
        return MemoryPeaks(tuple(places), peaks)

    def _facts(self) -> ClusterFacts:
        requests, limits, inits, targets, follows = in_turn(
            lambda asked: self._now(*asked),
            (
                (size_queries.stated(size_queries.REQUESTS_METRIC, self.where), (*_CONTAINER, "resource")),
                (size_queries.stated(size_queries.LIMITS_METRIC, self.where), (*_CONTAINER, "resource")),
                (size_queries.init_containers(self.where), _CONTAINER),
                (
                    size_queries.autoscaler_targets(self.where),
                    ("namespace", "horizontalpodautoscaler", "scaletargetref_kind", "scaletargetref_name"),
                ),
                (
                    size_queries.autoscaler_metrics(self.where),
                    ("namespace", "horizontalpodautoscaler", "metric_name"),
                ),
            ),
        )
        owners = ObjectOwners(
            pods=self._owners(size_queries.POD_OWNER_METRIC, "pod", in_days=True),
            replica_sets=self._owners(size_queries.REPLICA_SET_OWNER_METRIC, "replicaset", in_days=False),
            jobs=self._owners(size_queries.JOB_OWNER_METRIC, "job_name", in_days=True),
        )
        return ClusterFacts(
            owners=owners,
            requests=_amounts(requests),
            limits=_amounts(limits),
            init_containers=frozenset(self._containers(inits)),
            autoscalers=_autoscalers(targets, follows),
            missing=tuple(_missing(owners, bool(requests), targets)),
        )

    def _owners(self, metric: str, label: str, *, in_days: bool) -> dict[tuple[str, str], frozenset[ObjectOwner]]:
        """Return the owners of each object on the newest day on which it is known.

        ReplicaSets outlive their pods, so they are looked up at the end of each day alone.
        """
        labels = ("namespace", label, "owner_kind", "owner_name")

        def asked(day: tuple[float, int]) -> list[Element]:
            query = size_queries.owners(metric, label, self.where, day[1] if in_days else None)
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
        if each.value >= 0:
            amounts.setdefault(resource, {})[PodContainer(namespace, pod, container)] = each.value
    # Some containers have requests, so that a resource without any is one that nobody asks for.
    return {resource: amounts.get(resource, {}) for resource in RESOURCES} if amounts else {}


def _autoscalers(targets: Iterable[Element], follows: Iterable[Element]) -> dict[SizedWorkload, WorkloadAutoscaler]:
    resources: dict[tuple[str, str], set[str]] = defaultdict(set)
    for each in follows:
        namespace, name, resource = each.labels
        resources[namespace, name].add({CPU: "CPU", MEMORY: "memory"}[resource])
    found: dict[SizedWorkload, WorkloadAutoscaler] = {}
    for each in targets:
        namespace, name, kind, target = each.labels
        if (namespace, name) in resources:
            found[SizedWorkload(namespace, kind, target)] = WorkloadAutoscaler(
                name, tuple(sorted(resources[namespace, name]))
            )
    return found


def _missing(owners: ObjectOwners, has_requests: bool, targets: list[Element]) -> Iterable[str]:  # noqa: FBT001 - a fact
    if not owners.pods:
        yield f"{size_queries.POD_OWNER_METRIC} has no series: each pod stands for itself, as its workload is unknown"
    elif not owners.replica_sets and any(owner.kind == "ReplicaSet" for each in owners.pods.values() for owner in each):
        yield f"{size_queries.REPLICA_SET_OWNER_METRIC} has no series: the Deployments of ReplicaSets are unknown"
    if not has_requests:
        yield f"{size_queries.REQUESTS_METRIC} has no series: requests and savings are unknown"
    if owners.pods and not targets:
        yield f"{size_queries.HPA_METRIC} has no series: if HorizontalPodAutoscalers exist, their targets are not held"
