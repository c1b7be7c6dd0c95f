"""Reads one part of the usage that a recommendation needs from Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recommender.decisions.texts.times import rfc3339
from recommender.kinds.resources.usage import ContainerRows
from recommender.running.usage.cluster_history import ClusterHistory, ClusterReader
from recommender.running.usage.container_usage import read_cpu, workload_containers
from recommender.running.usage.target_usage import UsagePart
from recommender.running.usage.usage_queries import (
    POD_OWNER_METRIC,
    REPLICA_SET_OWNER_METRIC,
    Resolution,
    cpu_usage,
    namespace_matcher,
)
from recommender.running.usage.usage_window import SizeWindow

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
    from recommender.kinds.resources.workloads import PodContainer, SizedWorkload
    from recommender.running.usage.usage_needs import UsageNeed

KILLS_BEFORE_SECONDS: Final = 600
_REPLICA_SETS_SECONDS: Final = 3600
_CHOICE: Final = "prometheus: {{matchers: '{}'}}"


class OwnersUnknownError(Exception):
    """Containers used something, but the owners of their pods are unknown. The message names the missing metric."""


class NoUsageError(Exception):
    """No container uses anything at a given time, because the clock is ahead or nothing is scraped."""


def refuse_nothing(client: PrometheusClient, need: UsageNeed, at: float) -> None:
    """Ensure that usage at the time `at` is known. Raises NoUsageError if it is not, and PrometheusError.

    If usage at `at` is not known, earlier data may be missing as well, and may arrive later.
    """
    if not reader_of(client, need, SizeWindow(at, 0.0)).has_usage():
        where = f"of namespaces {', '.join(need.namespaces)} " if need.namespaces else ""
        raise NoUsageError(
            f"no container {where}uses memory at {rfc3339(at)}: is cAdvisor scraped, and the clock right?"
        )


def reader_of(client: PrometheusClient, need: UsageNeed, window: SizeWindow) -> ClusterReader:
    """Return the reader of the usage in a window."""
    return ClusterReader(
        client,
        window,
        namespace_matcher(need.namespaces),
        memory_query=need.settings.from_usage.memory,
        choice=_CHOICE,
        replica_sets_seconds=_REPLICA_SETS_SECONDS,
        kills_before_seconds=KILLS_BEFORE_SECONDS,
    )


def read_part(
    client: PrometheusClient, need: UsageNeed, start: float, end: float, resolution: Resolution, *, is_recent: bool
) -> UsagePart:
    """Return the usage between two times of one day.

    Raises PrometheusError, also for an answer that may be partial, and SeveralClustersError. For a part that
    `is_recent`, it also raises OwnersUnknownError: without owners the usage would be lost, and they may come back.
    """
    reader = reader_of(client, need, SizeWindow(end, end - start))
    reader.refuse_several_clusters()
    history = reader.history()
    if is_recent:
        _refuse_without_owners(history)
    owned = {
        pod: name for pod, name in workload_containers(history).items() if need.target_of(name.workload) is not None
    }
    rows = ContainerRows.of(owned)
    usage = need.settings.from_usage
    query = usage.cpu or cpu_usage(reader.where, resolution.rate_seconds)
    peaks = history.memory.peaks[0]
    cpu = read_cpu(reader, rows, query, resolution.step_seconds, is_overridden=bool(usage.cpu))
    return UsagePart(
        start=start,
        end=end,
        cpu=cpu,
        peaks={pod: float(peak) for pod, peak in zip(history.memory.pods, peaks, strict=True) if pod in owned},
        kills=history.kills[0] & owned.keys(),
        running=history.running & owned.keys(),
        facts=history.facts,
        doubled=_workloads_of(reader.doubled, history),
    )


def _workloads_of(pods: AbstractSet[PodContainer], history: ClusterHistory) -> dict[SizedWorkload, PodContainer]:
    """Return one of these containers for each workload that has at least one of them."""
    found = ((history.facts.owners.workload_of(pod.of_pod), pod) for pod in sorted(pods))
    return {workload: pod for workload, pod in found if workload is not None}


def _refuse_without_owners(history: ClusterHistory) -> None:
    owners = history.facts.owners
    if history.memory.pods and not owners.pods:
        raise OwnersUnknownError(f"{POD_OWNER_METRIC} has no series: scrape kube-state-metrics")
    has_replica_sets = any(owner.kind == "ReplicaSet" for each in owners.pods.values() for owner in each)
    if has_replica_sets and not owners.replica_sets:
        raise OwnersUnknownError(f"{REPLICA_SET_OWNER_METRIC} has no series: scrape kube-state-metrics")
