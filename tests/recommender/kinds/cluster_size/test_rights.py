"""The rights of cluster size recommendations: to watch what sizes depend on, and to write the outputs."""

from __future__ import annotations

from functools import partial

import pytest

from adapter.foundation.objects.resources import BUILT_IN, find_resource
from recommender.configuration.reading import read_configuration
from recommender.configuration.rights import rights_of
from recommender.running.memory.store_protocol import memory_object_name
from tests.recommender.configuration.files import whole

WATCHED = {
    f"list,watch {each}"
    for each in (
        "nodes",
        "pods",
        "namespaces",
        "persistentvolumeclaims",
        "persistentvolumes",
        "replicationcontrollers",
        "deployments.apps",
        "statefulsets.apps",
        "replicasets.apps",
        "daemonsets.apps",
        "jobs.batch",
        "poddisruptionbudgets.policy",
        "storageclasses.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "priorityclasses.scheduling.k8s.io",
    )
} | {"create events", "list capacitybuffers.autoscaling.x-k8s.io"}
PROCESS = {
    "tools: create configmaps",
    "tools: get,update configmaps tidewatch-recommender-nodes",
    "tools: create leases.coordination.k8s.io",
    "tools: get,update leases.coordination.k8s.io tidewatch-recommender",
}
ALWAYS = WATCHED | PROCESS
REQUESTS = {"list provisioningrequests.autoscaling.x-k8s.io"}
"""The right to name those that nobody answers while groups are written."""
SCALABLE = ("machinedeployments", "machinesets", "machinepools")
SEEN = {
    "kube-system: list,watch configmaps cluster-autoscaler-status",
    "kube-system: list,watch leases.coordination.k8s.io cluster-autoscaler",
    "tools: list,watch leases.coordination.k8s.io cluster-autoscaler",
}


def reading(where: str = "") -> set[str]:
    """Return the rights to find a namespace's groups of Cluster API, and to see whether another autoscaler runs."""
    kinds = (*(f"{each}.cluster.x-k8s.io" for each in (*SCALABLE, "machines", "clusters")),)
    return {f"{where}list,watch {each}" for each in (*kinds, "*.infrastructure.cluster.x-k8s.io")} | SEEN


def scaling(where: str = "") -> set[str]:
    """Return the rights to write the groups' sizes, within the limits and pauses that the objects then have."""
    objects = {f"{where}get {each}.cluster.x-k8s.io" for each in (*SCALABLE, "clusters")}
    return objects | {f"{where}get,update {each}.cluster.x-k8s.io/scale" for each in SCALABLE}


MACHINES = "capi: get,update machines.cluster.x-k8s.io"
BUFFER = {
    "shop: list,watch capacitybuffers.autoscaling.x-k8s.io reserve",
    "shop: get,update capacitybuffers.autoscaling.x-k8s.io reserve",
    "shop: list,watch podtemplates",
}
STATIC = "nodeGroups: [{name: a, max: 5, selector: {pool: a}}]"
PREDICTIVE = "{load: x, loadPerReplica: 1, horizon: 2m}"
CASES = {
    "groups of the file": (f"clusterSize: {{{STATIC}}}", ALWAYS),
    "groups by label": ("clusterSize: {nodeGroups: {byLabel: {key: pool}}}", ALWAYS),
    "groups of a plugin": ("clusterSize: {nodeGroups: {plugin: {name: cloud}}}", ALWAYS),
    "a provider that is only read": (
        "clusterSize: {nodeGroups: {externalGRPC: {address: 'localhost:1'}}}",
        ALWAYS | SEEN,
    ),
    "a provider that deletes nodes": (
        "clusterSize: {nodeGroups: {externalGRPC: {address: 'localhost:1', deleteNodes: true}}}\n  outputs: [scale]",
        ALWAYS | REQUESTS | SEEN | {"get,update nodes", "create pods/eviction"},
    ),
    "a plugin that writes and deletes": (
        "clusterSize: {nodeGroups: {plugin: {name: cloud, writes: true, deleteNodes: true}}}\n  outputs: [scale]",
        ALWAYS | REQUESTS | SEEN | {"get,update nodes", "create pods/eviction"},
    ),
    "Cluster API in a namespace": (
        "clusterSize: {nodeGroups: {clusterAPI: {namespace: capi}}}",
        ALWAYS | reading("capi: "),
    ),
    "Cluster API in two namespaces": (
        "clusterSize: {nodeGroups: {clusterAPI: {namespaces: [capi, more]}}, autoscalerNamespaces: [ops]}",
        ALWAYS
        | reading("capi: ")
        | reading("more: ")
        | {"ops: list,watch leases.coordination.k8s.io cluster-autoscaler"},
    ),
    "Cluster API in a namespace, scaled": (
        "clusterSize: {nodeGroups: {clusterAPI: {namespace: capi}}}\n  outputs: [metric, scale]",
        ALWAYS | REQUESTS | reading("capi: ") | scaling("capi: "),
    ),
    "Cluster API in two namespaces, scaled": (
        "clusterSize: {nodeGroups: {clusterAPI: {namespaces: [capi, more]}}}\n  outputs: [scale]",
        ALWAYS | REQUESTS | reading("capi: ") | reading("more: ") | scaling("capi: ") | scaling("more: "),
    ),
    "Machines that would be marked if anything were scaled": (
        "clusterSize: {nodeGroups: {clusterAPI: {namespace: capi, markMachines: true}}}",
        ALWAYS | reading("capi: "),
    ),
    "Machines that are marked": (
        "clusterSize: {nodeGroups: {clusterAPI: {namespace: capi, markMachines: true}}}\n  outputs: [scale]",
        ALWAYS | REQUESTS | reading("capi: ") | scaling("capi: ") | {MACHINES},
    ),
    "Machines that are no longer marked": (
        "clusterSize: {nodeGroups: {clusterAPI: {namespace: capi, markMachines: false}}}\n  outputs: [scale]",
        ALWAYS | REQUESTS | reading("capi: ") | scaling("capi: ") | {MACHINES},
    ),
    "a CapacityBuffer": (
        f"clusterSize: {{{STATIC}}}\n  outputs: [capacityBuffer]\n  capacityBuffer: {{namespace: shop, name: reserve}}",
        ALWAYS | BUFFER,
    ),
    "forecasts, whose pods count no further than quotas and HPAs allow": (
        f"clusterSize: {{{STATIC}, forecasts: [chat]}}\n- name: chat\n  predictive: {PREDICTIVE}",
        (ALWAYS - {"tools: get,update configmaps tidewatch-recommender-nodes"})
        | {"list,watch resourcequotas", "list,watch horizontalpodautoscalers.autoscaling"}
        | {"tools: get,update configmaps tidewatch-recommender-chat tidewatch-recommender-nodes"},
    ),
    "priorities of the file": (
        f"clusterSize: {{{STATIC}, expander: priority, priorities: {{10: [a]}}}}",
        ALWAYS,
    ),
    "priorities of Cluster Autoscaler's ConfigMap": (
        f"clusterSize: {{{STATIC}, expander: [priority, least-waste]}}",
        ALWAYS | {"kube-system: get configmaps cluster-autoscaler-priority-expander"},
    ),
    "priorities of another ConfigMap": (
        f"clusterSize: {{{STATIC}, expander: priority, priorities: {{configMap: {{namespace: x, name: y}}}}}}",
        ALWAYS | {"x: get configmaps y"},
    ),
}


def texts(entry: str) -> list[str]:
    """Return each right as a line."""
    configuration = read_configuration(
        whole(f"- name: nodes\n  {entry}\n", top="prometheus: {url: http://prometheus}\n"), "recommender.yaml"
    )
    assert not configuration.refused
    rights = rights_of(
        configuration,
        namespace="tools",
        resolve=partial(find_resource, BUILT_IN),
        memory_name=memory_object_name,
    )
    return [
        (f"{right.namespace}: " if right.namespace else "")
        + f"{','.join(right.verbs)} {right.resource}"
        + (f".{right.api_group}" if right.api_group else "")
        + (f"/{right.subresource}" if right.subresource else "")
        + (f" {' '.join(right.names)}" if right.names else "")
        for right in rights
    ]


@pytest.mark.parametrize(("entry", "expected"), CASES.values(), ids=CASES)
def test_cluster_sizes_need_exactly_these_rights(entry: str, expected: set[str]) -> None:
    found = texts(entry)
    assert set(found) == expected
    assert len(found) == len(expected)
