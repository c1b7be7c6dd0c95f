"""The recommender, installed by the real Helm and run as the chart rendered it, sizes a cluster."""

from __future__ import annotations

import json
import re
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.helm.chart import CHART, helm
from tests.helm.recommenders import configuration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.controlplane.cluster import Cluster

NAME: Final = "tidewatch-recommender"
POOL: Final = "e2e.tidewatch.io/pool"
GROUP: Final = "general"
WATCHED: Final = {
    *("nodes", "pods", "namespaces", "persistentvolumeclaims", "persistentvolumes", "replicationcontrollers"),
    *("deployments", "statefulsets", "replicasets", "daemonsets", "jobs", "poddisruptionbudgets"),
    *("storageclasses", "csinodes", "priorityclasses"),
    # By name: the role does not allow the other ConfigMaps of kube-system.
    "configmaps",
    # By name as well: the Lease of a Cluster Autoscaler.
    "leases",
}


@contextmanager
def installed(cluster: Cluster, namespace: str, values: dict[str, Any]) -> Iterator[None]:
    options = ("--namespace", namespace)
    helm("install", "tidewatch", str(CHART), *options, values=values, kubeconfig=cluster.kubeconfig)
    try:
        yield
    finally:
        helm("uninstall", "tidewatch", *options, kubeconfig=cluster.kubeconfig)


def values_for(pool: str) -> dict[str, Any]:
    """Return values for a group without a node; neither a kind of Cluster API nor the priorities exist."""
    group = {"name": GROUP, "min": 2, "max": 3, "selector": {POOL: pool}, "template": {"cpu": "2", "memory": "4Gi"}}
    groups = {"static": [group], "clusterAPI": {"namespace": pool}}
    size = {"nodeGroups": groups, "expander": ["priority", "least-waste"], "scaleDown": {"enabled": False}}
    config = configuration({"name": "workers", "clusterSize": size}, pollInterval="1s")
    return {"adapter": {"enabled": False}, "recommender": {"enabled": True, "replicas": 1, "config": config}}


def scraped(address: str) -> dict[str, float]:
    """Return the samples of cluster sizes, by metric."""
    with urllib.request.urlopen(f"{address}/metrics", timeout=10) as response:
        text = response.read().decode()
    found = re.findall(r"^(tidewatch_\w*(?:nodes|pods))\{[^}]*\} (\S+)$", text, re.MULTILINE)
    return {name: float(value) for name, value in found}


@pytest.mark.needs_pods
def test_it_sizes_a_cluster_with_the_rights_of_the_chart_and_is_forbidden_nothing(
    cluster: Cluster, namespace: str
) -> None:
    with installed(cluster, namespace, values_for(namespace)):
        (pod,) = cluster.wait_until_ready(namespace, NAME)
        address = f"http://{pod['status']['podIP']}:8080"
        wanted = {
            "tidewatch_recommended_nodes": 2.0,
            "tidewatch_node_group_nodes": 0.0,
            "tidewatch_node_group_max_nodes": 3.0,
        }
        cluster.wait_for(
            "the size", lambda: wanted.items() <= scraped(address).items(), why_not=lambda: scraped(address)
        )
        account = f"system:serviceaccount:{namespace}:{NAME}"
        asked = [event for event in cluster.audit_events() if event.user == account]
        assert {event.resource for event in asked if event.verb == "watch"} == WATCHED
        assert [event for event in asked if event.code == 403] == []
        log = [json.loads(line) for line in cluster.pod_log(pod).splitlines() if line.startswith("{")]
        assert log
        assert [line for line in log if "forbidden" in json.dumps(line).lower()] == []
