"""Nodes and workloads from kube-state-metrics' series, for use without access to the cluster."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.exporters.held_series import samples_of
from adapter.foundation.exporters.pod_names import LikelyWorkload, workload_of
from adapter.foundation.objects.names import ObjectName, is_namespace_name, is_object_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adapter.foundation.sources.prometheus.answers.decoding import Sample
    from adapter.foundation.sources.prometheus.queries.budget import Prometheus

# In a series with `exported_namespace`, `namespace` and `pod` are those of kube-state-metrics itself.
_HONOURED: Final = 'exported_namespace=""'
_NODES: Final = (
    "max by (node, resource) (kube_node_status_allocatable)"
    ' or label_replace(max by (node) (kube_node_spec_unschedulable), "resource", "unschedulable", "", "")'
    ' or label_replace(max by (node) (kube_node_status_condition{condition="Ready",status="true"}), '
    '"resource", "Ready", "", "")'
)
_WORKLOADS: Final = (
    ("Deployment", "deployment", "kube_deployment_spec_replicas", "kube_deployment_status_replicas_ready"),
    ("StatefulSet", "statefulset", "kube_statefulset_replicas", "kube_statefulset_status_replicas_ready"),
)
_STARTUPS: Final = (
    f"max by (namespace, pod) (kube_pod_status_ready_time{{{_HONOURED}}})"
    f" - on (namespace, pod) max by (namespace, pod) (kube_pod_created{{{_HONOURED}}})"
)


def documents_of_kube_state(client: Prometheus) -> list[dict[str, Any]]:
    """Return nodes and workloads as objects with the fields that decisions need; none without kube-state-metrics.

    Raises PrometheusError.
    """
    return [*_nodes(client), *_workloads(client)]


def startups_of_kube_state(client: Prometheus) -> Mapping[LikelyWorkload, tuple[float, ...]]:
    """Return, by workload, how long its ready pods took to become ready. Raises PrometheusError."""
    found: defaultdict[LikelyWorkload, list[float]] = defaultdict(list)
    for sample in _finite(client, _STARTUPS):
        workload = workload_of(ObjectName(sample.labels.get("namespace", ""), sample.labels.get("pod", "")))
        if workload is not None:
            found[workload].append(sample.value)
    return {workload: tuple(each) for workload, each in found.items()}


def _finite(client: Prometheus, query: str) -> list[Sample]:
    found = samples_of(client, query, ignores_histograms=True)
    return [sample for sample in found if math.isfinite(sample.value)]


def _nodes(client: Prometheus) -> Iterator[dict[str, Any]]:
    facts: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for sample in _finite(client, _NODES):
        facts[sample.labels.get("node", "")][sample.labels.get("resource", "")] = sample.value
    for name, known in sorted(facts.items()):
        if not is_object_name(name) or not {"cpu", "Ready"} <= known.keys():
            continue
        amounts = {"cpu": f"{round(known['cpu'] * 1000)}m"}
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "spec": {"unschedulable": known.get("unschedulable", 0) > 0},
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": "True" if known["Ready"] > 0 else "False"}],
            },
        }


def _workloads(client: Prometheus) -> Iterator[dict[str, Any]]:
    for kind, label, size, ready in _WORKLOADS:
        names = f"max by (namespace, {label})"
        known = {
            (sample.labels.get("namespace", ""), sample.labels.get(label, "")): int(sample.value)
            for sample in _finite(client, f"{names} ({ready}{{{_HONOURED}}})")
        }
        for sample in _finite(client, f"{names} ({size}{{{_HONOURED}}})"):
            key = namespace, name = sample.labels.get("namespace", ""), sample.labels.get(label, "")
            if not is_namespace_name(namespace) or not is_object_name(name):
                continue
            status = {"replicas": int(sample.value), "readyReplicas": known[key]} if key in known else {}
            yield {
                "apiVersion": "apps/v1",
                "kind": kind,
                "metadata": {"namespace": namespace, "name": name},
                "spec": {"replicas": int(sample.value)},
                "status": status,
            }
