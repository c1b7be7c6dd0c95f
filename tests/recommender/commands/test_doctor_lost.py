"""What the doctor says about rights that are missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.reports.lines import CheckStatus
from adapter.sources.kubernetes.access_rights import AccessRight, Subject
from recommender.cluster_size.node_groups.kinds import CLUSTER_API_GROUP
from recommender.commands.doctor.lost import lost_without
from recommender.commands.doctor.rights import judge_right
from recommender.configuration.reading import read_configuration
from recommender.configuration.rights_of_sizes import rights_of_sizes
from recommender.configuration.role_rules import GET, KEEP, WATCH, RoleRule
from tests.recommender.configuration.files import entry, whole

if TYPE_CHECKING:
    from recommender.configuration.model import Configuration

CAPI = CLUSTER_API_GROUP
INFRASTRUCTURE = f"infrastructure.{CAPI}"
ERROR, WARNING = CheckStatus.ERROR, CheckStatus.WARNING


def everything() -> Configuration:
    kind = "clusterSize: {nodeGroups: {clusterAPI: {markMachines: true}}}"
    buffer = "capacityBuffer: {namespace: shop, name: reserve}"
    return read_configuration(
        whole(entry("nodes", "outputs: [metric, scale, capacityBuffer]", buffer, kind=kind)), "r.yaml"
    )


@pytest.mark.parametrize(
    ("group", "resource", "verbs", "status", "lost"),
    [
        ("", "pods", WATCH, ERROR, "no cluster size is recommended"),
        ("apps", "replicasets", WATCH, ERROR, "nodes with their pods are kept"),
        ("batch", "jobs", WATCH, ERROR, "nodes with their pods are kept"),
        ("policy", "poddisruptionbudgets", WATCH, ERROR, "no node goes"),
        ("", "namespaces", WATCH, WARNING, "labels of namespaces"),
        ("storage.k8s.io", "csinodes", WATCH, ERROR, "limits of volumes"),
        ("scheduling.k8s.io", "priorityclasses", WATCH, WARNING, "priorities"),
        ("", "configmaps", WATCH, ERROR, "Cluster Autoscaler"),
        ("", "configmaps", KEEP, ERROR, "memories"),
        (CAPI, "machinepools", WATCH, ERROR, "the node groups of this kind"),
        (CAPI, "machinepools", GET, ERROR, "limits and pauses right before a write"),
        (CAPI, "machines", WATCH, ERROR, "which nodes belong to which node group"),
        (CAPI, "machines", KEEP, ERROR, "marks of the Machines"),
        (CAPI, "clusters", WATCH, ERROR, "pauses of whole clusters"),
        (INFRASTRUCTURE, "*", WATCH, WARNING, "have no node"),
        ("autoscaling.x-k8s.io", "capacitybuffers", WATCH, ERROR, "what a chunk"),
        ("autoscaling.x-k8s.io", "capacitybuffers", KEEP, ERROR, "keeps the one that it has"),
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


def test_every_right_of_cluster_sizes_has_a_text_of_its_own() -> None:
    fallbacks = {lost_without(RoleRule("", "example.com", "rockets", "", verbs)) for verbs in (WATCH, GET)}
    rights = tuple(rights_of_sizes(everything()))

    assert len(rights) > 20
    assert [right for right in rights if lost_without(right) in fallbacks] == []


def test_the_line_names_the_right_what_is_lost_and_what_to_grant() -> None:
    right = RoleRule("", "policy", "poddisruptionbudgets", "", WATCH)
    missing = (AccessRight("list", "poddisruptionbudgets", "policy", "", "", ""),)

    line = judge_right(right, Subject(), missing)

    assert line.message.endswith("lost without it: which pods may be evicted: no pod is moved, so no node goes")
    assert line.fix == "grant list, watch on poddisruptionbudgets.policy by a ClusterRole, as the chart does"
