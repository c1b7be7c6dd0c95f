"""The doctor says, for each missing right, what does not work without it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.reports.lines import CheckStatus
from adapter.foundation.sources.kubernetes.access_rights import AccessRight, Subject
from recommender.commands.doctor.lost import lost_without
from recommender.commands.doctor.rights import judge_right
from recommender.configuration.reading import read_configuration
from recommender.configuration.rights import rights_of
from recommender.kinds.cluster_size.node_groups.watched_kinds import CLUSTER_API_GROUP
from recommender.kinds.role_rules import GET, LIST, UPDATE, WATCH, RoleRule
from recommender.running.memory.store_protocol import memory_object_name
from tests.recommender.configuration.files import entry, whole

if TYPE_CHECKING:
    from recommender.configuration.recommender_configuration import Configuration

CAPI = CLUSTER_API_GROUP
INFRASTRUCTURE = f"infrastructure.{CAPI}"
ERROR, WARNING = CheckStatus.ERROR, CheckStatus.WARNING


def everything() -> Configuration:
    kind = "clusterSize: {nodeGroups: {clusterAPI: {namespaces: [capi], markMachines: true}}}"
    buffer = "capacityBuffer: {namespace: shop, name: reserve}"
    return read_configuration(
        whole(entry("nodes", "outputs: [metric, scale, capacityBuffer]", buffer, kind=kind)), "r.yaml"
    )


@pytest.mark.parametrize(
    ("group", "resource", "verbs", "status", "lost"),
    [
        ("", "pods", WATCH, ERROR, "no cluster size is recommended"),
        ("apps", "replicasets", WATCH, ERROR, "nodes with such pods are kept"),
        ("batch", "jobs", WATCH, ERROR, "nodes with such pods are kept"),
        ("policy", "poddisruptionbudgets", WATCH, ERROR, "no node is removed"),
        ("", "namespaces", WATCH, WARNING, "labels of namespaces"),
        ("storage.k8s.io", "csinodes", WATCH, ERROR, "limits of volumes"),
        ("scheduling.k8s.io", "priorityclasses", WATCH, WARNING, "priorities"),
        ("", "configmaps", WATCH, ERROR, "Cluster Autoscaler"),
        ("", "configmaps", UPDATE, ERROR, "memories"),
        (CAPI, "machinepools", WATCH, ERROR, "the node groups of this kind"),
        (CAPI, "machinepools", GET, ERROR, "limits and pauses right before a write"),
        (CAPI, "machines", WATCH, ERROR, "which nodes belong to which node group"),
        (CAPI, "machines", UPDATE, ERROR, "marks on the Machines"),
        (CAPI, "clusters", WATCH, ERROR, "pauses of whole clusters"),
        (INFRASTRUCTURE, "*", WATCH, WARNING, "have no node"),
        ("autoscaling.x-k8s.io", "capacitybuffers", WATCH, ERROR, "the definition of a chunk"),
        ("autoscaling.x-k8s.io", "capacitybuffers", UPDATE, ERROR, "keeps the one that it has"),
        ("autoscaling.x-k8s.io", "capacitybuffers", LIST, WARNING, "keep the written size"),
        ("autoscaling.x-k8s.io", "provisioningrequests", LIST, WARNING, "ProvisioningRequests that wait"),
        ("keda.sh", "scaledobjects", WATCH, WARNING, "where KEDA is installed, the targets keep their sizes"),
        ("example.com", "rockets", WATCH, ERROR, "what is counted or sized by this kind"),
        ("example.com", "rockets", GET, WARNING, "field managers"),
    ],
)
def test_a_missing_right_says_what_is_lost(
    group: str, resource: str, verbs: tuple[str, ...], status: CheckStatus, lost: str
) -> None:
    text, found = lost_without(RoleRule("capi", group, resource, "", verbs))

    assert found is status
    assert lost in text


def test_every_right_of_cluster_sizes_has_its_own_text() -> None:
    fallbacks = {lost_without(RoleRule("", "example.com", "rockets", "", verbs)) for verbs in (WATCH, GET)}
    rights = rights_of(
        everything(), namespace="here", resolve=partial(find_resource, BUILT_IN), memory_name=memory_object_name
    )

    assert len(rights) > 20
    assert [right for right in rights if lost_without(right) in fallbacks] == []


def test_the_line_says_what_is_lost_and_what_to_grant() -> None:
    right = RoleRule("", "policy", "poddisruptionbudgets", "", WATCH)
    missing = (AccessRight("list", "poddisruptionbudgets", "policy", "", "", ""),)

    line = judge_right(right, Subject(), missing)

    assert line.message.endswith("affected: which pods may be evicted: no pod is moved, so no node is removed")
    assert line.fix == "grant list, watch on poddisruptionbudgets.policy by a ClusterRole, as the chart does"
