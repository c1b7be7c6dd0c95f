"""The doctor says what does not work without a right that cluster sizes need."""

from __future__ import annotations

import pytest

from adapter.foundation.reports.lines import CheckStatus
from adapter.foundation.sources.kubernetes.access_rights import AccessRight, Subject
from recommender.commands.doctor.rights import judge_right
from recommender.kinds.role_rules import APPLY, GET, UPDATE, WATCH, RoleRule


@pytest.mark.parametrize(
    ("right", "lost"),
    [
        (RoleRule("", "policy", "poddisruptionbudgets", "", WATCH), "which pods may be evicted: no pod is moved"),
        (
            RoleRule("kube-system", "", "configmaps", "", WATCH, ("status",)),
            "which of them Cluster Autoscaler manages",
        ),
        (RoleRule("kube-system", "", "configmaps", "", GET, ("order",)), "parameters and memories"),
        (RoleRule("", "tidewatch.io", "recommendations", "", WATCH), "none of them counts"),
        (RoleRule("", "tidewatch.io", "recommendations", "status", APPLY), "owners cannot see"),
        (RoleRule("capi", "cluster.x-k8s.io", "machinesets", "scale", UPDATE), "scale calls"),
    ],
)
def test_a_missing_right_of_cluster_sizes_is_named_with_what_is_lost(right: RoleRule, lost: str) -> None:
    missing = AccessRight(right.verbs[0], right.resource, right.api_group, right.namespace, "", right.subresource)
    line = judge_right(right, Subject(), (missing,))
    assert line.status is CheckStatus.ERROR
    assert lost in line.message
