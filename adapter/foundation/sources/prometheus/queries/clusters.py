"""Finds the clusters whose series a store holds, as far as labels distinguish them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.sources.prometheus.errors import refuse_partial
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.time.pace import UNPACED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings

CLUSTER_LABELS: Final = (
    "cluster",
    "clusterName",
    "cluster_id",
    "cluster_name",
    "k8s_cluster",
    "k8s_cluster_name",
    "kubernetes_cluster",
)
_TENANT_LABELS: Final = ("__tenant_id__", "vm_account_id", "vm_project_id")
"""What Mimir and Cortex, and VictoriaMetrics, add if several tenants are queried at once."""
NODE_CLUSTER_LABELS: Final = (*CLUSTER_LABELS, *_TENANT_LABELS)
"""The labels that distinguish clusters by one metric of their nodes.

Series of containers, and the exporters, may be divided among the tenants of one cluster.
"""
# Series of nodes: other exporters have a label `cluster` for databases and queues.
_QUERY: Final = (
    f"group by ({','.join(('__name__', *NODE_CLUSTER_LABELS))}) "
    '({__name__=~"kube_node_info|kubelet_node_name|machine_cpu_cores|node_uname_info"})'
)


def clusters_in(settings: PrometheusSettings, timeout_seconds: float) -> Mapping[str, tuple[str, ...]]:
    """Return the values of each cluster label that has several; an empty value stands for series without the label.

    Raises PrometheusError, also if a partial answer shows no such label, and SettingsError.
    """
    with PrometheusClient(settings) as client:
        answer = client.instant(_QUERY, timeout_seconds=timeout_seconds)
        found = [sample.labels for batch in answer.batches(UNPACED) for sample in batch]
    values = {label: {labels.get(label, "") for labels in found} for label in CLUSTER_LABELS}
    values |= {label: _most_values(label, found) for label in _TENANT_LABELS}
    several = {label: tuple(sorted(each)) for label, each in values.items() if len(each) > 1}
    if not several:
        refuse_partial(_QUERY, answer.warnings)
    return several


def _most_values(label: str, found: Iterable[Mapping[str, str]]) -> set[str]:
    """Return the values of a label in the series of the metric that has the most of them."""
    by_metric: dict[str, set[str]] = {}
    for labels in found:
        by_metric.setdefault(labels.get("__name__", ""), set()).add(labels.get(label, ""))
    return max(by_metric.values(), key=len, default=set())
