"""Turns the facts in Prometheus and the cluster into drafts of recommendations."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.exporters.held_series import held_metrics, recognise_each
from adapter.foundation.exporters.known_metrics import RATE_WINDOW, KnownMetric, MetricSubject, SeriesType
from adapter.foundation.exporters.table import KNOWN
from adapter.foundation.reports.counts import agreeing, count_of
from adapter.foundation.sources.kubernetes.writing import ObjectClient
from recommender.commands.init.addons import addons_of, node_group_label
from recommender.commands.init.cluster_reading import documents_of_files, documents_of_server
from recommender.commands.init.current_values import inputs_by_documents, inputs_by_files, inputs_by_server
from recommender.commands.init.drafts import (
    Draft,
    addon_draft,
    entry_name,
    horizon,
    load_per_replica,
    nodes_draft,
    predictive_draft,
)
from recommender.commands.init.kube_state_cluster import documents_of_kube_state, startups_of_kube_state
from recommender.commands.init.seen_cluster import SeenCluster, seen_in
from recommender.commands.init.workload_loads import WorkloadLoad, carried_load, loads_of_workloads

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from adapter.foundation.exporters.recognition import RecognisedMetric, UnusedMetric
    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from adapter.foundation.sources.prometheus.queries.budget import Prometheus
    from recommender.commands.init.current_values import ReadInputs

MOST_LOADS: Final = 50
"""The largest number of workloads for which entries are written, since each takes three queries."""
_NODES: Final = "nodes"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The facts on which proposed recommendations are based."""

    cluster: SeenCluster
    loads: tuple[WorkloadLoad, ...]
    unused: tuple[str, ...]
    """Sentences about series that are not used, such as those that are not the load of one workload."""
    read_inputs: ReadInputs


def look_around(client: Prometheus, files: Path | None, cluster_client: KubernetesClient | None) -> Surroundings:
    """Return the loads and the cluster: of the files, of the API server, or, without both, of kube-state-metrics.

    Raises PrometheusError, and errors of the sources.
    """
    usable, unlabelled = recognise_each(client, held_metrics(client, KNOWN))
    loads, unanswered = loads_of_workloads(client, usable)
    if files is not None:
        cluster, read = seen_in(documents_of_files(files)), inputs_by_files(files)
    elif cluster_client is not None:
        documents = documents_of_server(ObjectClient(cluster_client), {load.workload.namespace for load in loads})
        cluster, read = seen_in(documents), inputs_by_server(cluster_client)
    else:
        made = documents_of_kube_state(client)
        startups = startups_of_kube_state(client)
        # The nodes' labels are hardly ever in kube-state-metrics, and pending pods are not in the form that sizes need.
        cluster = replace(seen_in(made), startup_seconds=startups, node_labels=())
        read = inputs_by_documents(made)
    known = [load for load in loads if not cluster.replicas or load.workload in cluster.replicas]
    unused = [*_not_of_one_workload(usable), *map(_unused_text, (*unlabelled, *unanswered))]
    unused += [
        f"{load.known.series}: its pods look like those of {load.workload.kind} {load.workload.namespace}/"
        f"{load.workload.name}, which does not exist."
        for load in loads
        if load not in known
    ]
    if len(known) > MOST_LOADS:
        more = len(known) - MOST_LOADS
        have = agreeing(more, "has", "have")
        unused.append(f"{count_of(more, 'more workload')} {have} such metrics; those with the most pods are here.")
        largest = sorted(known, key=lambda load: -load.pods)[:MOST_LOADS]
        known = [load for load in known if load in largest]
    return Surroundings(cluster, tuple(known), tuple(unused), read)


def proposed_entries(client: Prometheus, seen: Surroundings) -> tuple[Draft, ...]:
    """Return the drafts. Raises PrometheusError."""
    addons = addons_of(seen.cluster)
    workloads = [load.workload for load in seen.loads]
    workloads += [each.workload for each in addons if each.workload not in workloads]
    names = Counter(workload.name for workload in workloads)
    drafts: dict[str, Draft] = {}
    for load in seen.loads:
        per_replica = load_per_replica(carried_load(client, load))
        startup = horizon(seen.cluster.startup_seconds.get(load.workload, ()))
        name = entry_name(load.workload, drafts, names)
        drafts[name] = predictive_draft(load, name, per_replica, startup)
    sized_by_load = {load.workload for load in seen.loads}
    for addon in addons:
        # There is one entry per workload: DNS servers publish their requests, but nobody predicts them.
        if addon.workload not in sized_by_load:
            name = entry_name(addon.workload, drafts, names)
            drafts[name] = addon_draft(addon, name)
    label = node_group_label(seen.cluster)
    if label is not None:
        name = _NODES if _NODES not in drafts else f"{_NODES}-of-cluster"
        drafts[name] = nodes_draft(*label, len(seen.cluster.node_labels), name)
    return tuple(drafts.values())


def _not_of_one_workload(metrics: Sequence[RecognisedMetric]) -> Iterable[str]:
    for metric in metrics:
        known = metric.known
        if known.subject is not MetricSubject.POD:
            yield (
                f"{known.exporter}: {known.series} ({known.meaning}): no series says which workload works on it. "
                f"Write an entry with that workload as its target, and a load such as sum({_load_of(known)})."
            )


def _load_of(known: KnownMetric) -> str:
    series = f"{known.series}{{{known.matchers or '…'}}}"
    return f"rate({series}[{RATE_WINDOW}])" if known.type is SeriesType.COUNTER else series


def _unused_text(unused: UnusedMetric) -> str:
    return f"{unused.known.exporter}: {unused.known.series}: {unused.reason}: {unused.fix}."
