from __future__ import annotations

import pytest

from recommender.cluster_size.model.settings import (
    BufferSettings,
    ClusterApiGroups,
    ClusterSizeSettings,
    LabelGroups,
    NodeGroupSources,
)
from recommender.cluster_size.node_groups.rights import rights_of

READ = {
    "list,watch cluster.x-k8s.io/machinedeployments",
    "list,watch cluster.x-k8s.io/machinesets",
    "list,watch cluster.x-k8s.io/machinepools",
    "list,watch cluster.x-k8s.io/machines",
    "list,watch cluster.x-k8s.io/clusters",
    "list,watch infrastructure.cluster.x-k8s.io/*",
    "list,watch /configmaps[cluster-autoscaler-status]",
}
SCALE = {
    "create /events",
    *(f"get cluster.x-k8s.io/{each}" for each in ("machinedeployments", "machinesets", "machinepools", "clusters")),
    *(f"get,update cluster.x-k8s.io/{each}/scale" for each in ("machinedeployments", "machinesets", "machinepools")),
}
BUFFER = {
    "list,watch,get,update autoscaling.x-k8s.io/capacitybuffers[reserve]",
    "list,watch /podtemplates",
    "create /events",
}
CAPI = ClusterApiGroups(namespace="capi")
MARKING = ClusterApiGroups(namespace="capi", mark_machines=True)


@pytest.mark.parametrize(
    ("sources", "scales", "writes_buffer", "expected"),
    [
        (NodeGroupSources(by_label=LabelGroups("pool")), True, False, set()),
        (NodeGroupSources(cluster_api=CAPI), False, False, READ),
        (NodeGroupSources(cluster_api=MARKING), False, False, READ),
        (NodeGroupSources(cluster_api=CAPI), True, False, READ | SCALE),
        (NodeGroupSources(cluster_api=MARKING), True, False, READ | SCALE | {"get,update cluster.x-k8s.io/machines"}),
        (NodeGroupSources(), False, True, BUFFER),
    ],
)
def test_sources_and_outputs_need_these_rights_and_no_others(
    sources: NodeGroupSources, *, scales: bool, writes_buffer: bool, expected: set[str]
) -> None:
    settings = ClusterSizeSettings(sources, buffer=BufferSettings("shop", "reserve"))
    rights = rights_of(settings, scales=scales, writes_buffer=writes_buffer)
    texts = {
        f"{','.join(one.verbs)} {one.api_group}/{one.resource}"
        + (f"/{one.subresource}" if one.subresource else "")
        + (f"[{','.join(one.names)}]" if one.names else "")
        for one in rights
    }
    assert texts == expected
    assert {one.namespace for one in rights} <= {"capi", "shop", "kube-system"}
    assert len(texts) == len(rights)
