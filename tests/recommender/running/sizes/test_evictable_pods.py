"""Which pods leave a node that is removed, which of them forbid it, and how they are evicted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings, NodeGroupSources
from recommender.kinds.cluster_size.scale_down.annotations import DAEMON_SET_POD
from recommender.running.sizes.evictable_pods import leaving_pods, obstacle_to, pods_to_evict

SINCE: Final = 1_767_225_600.0
RULES: Final = ClusterSizeSettings(NodeGroupSources())
ANY_CONTROLLER: Final = replace(
    RULES, scale_down=replace(RULES.scale_down, skip_nodes_with_custom_controller_pods=False)
)
CORDON: Final = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
REMOVAL: Final = {"key": "ToBeDeletedByClusterAutoscaler", "operator": "Exists"}


def pod(
    owner: str = "apps/v1 ReplicaSet",
    *,
    is_controller: bool = True,
    phase: str = "Running",
    spec: dict[str, Any] | None = None,
    **metadata: object,
) -> dict[str, Any]:
    """Return a pod as the API server has it; `owner` is an API version and a kind, or empty."""
    version, _, kind = owner.partition(" ")
    owners = [{"apiVersion": version, "kind": kind, "name": "x", "controller": is_controller}] if owner else []
    return {
        "metadata": {"namespace": "shop", "name": "web", "uid": "1", "ownerReferences": owners, **metadata},
        "spec": spec or {},
        "status": {"phase": phase},
    }


@pytest.mark.parametrize(
    ("given", "leaves"),
    [
        pytest.param(pod(), True, id="of a ReplicaSet"),
        pytest.param(pod("apps/v1 DaemonSet"), False, id="of a DaemonSet"),
        pytest.param(pod("apps.kruise.io/v1beta1 DaemonSet"), True, id="of a DaemonSet of another API group"),
        pytest.param(pod("apps/v1 DaemonSet", is_controller=False), True, id="owned, and not controlled"),
        pytest.param(pod(annotations={DAEMON_SET_POD: "true"}), False, id="said to be of a DaemonSet"),
        pytest.param(pod(phase="Succeeded"), False, id="succeeded"),
        pytest.param(pod(phase="Failed"), False, id="failed"),
    ],
)
def test_pods_that_end_with_the_node_or_have_ended_are_not_evicted(given: dict[str, Any], *, leaves: bool) -> None:
    assert leaving_pods([given], RULES, SINCE, 0.0) == ([given] if leaves else [])


@pytest.mark.parametrize(
    ("given", "rules", "reason"),
    [
        pytest.param(pod("x.io/v1 Database"), RULES, "is controlled by Database x", id="of a custom kind"),
        pytest.param(pod("x.io/v1 Database"), ANY_CONTROLLER, "", id="of a custom kind, if that is allowed"),
        pytest.param(pod(is_controller=False), RULES, "has no controller", id="owned, and not controlled"),
        pytest.param(pod(""), RULES, "has no controller", id="of nobody"),
        pytest.param(pod("", deletionTimestamp="2026-01-01T00:00:00Z"), RULES, "", id="of nobody, and going already"),
        pytest.param(
            pod(spec={"volumes": [{"name": "logs", "hostPath": {"path": "/logs"}}]}), RULES, "logs", id="hostPath"
        ),
    ],
)
def test_a_pod_that_nobody_recreates_with_its_data_forbids_the_removal(
    given: dict[str, Any], rules: ClusterSizeSettings, reason: str
) -> None:
    found = obstacle_to([given], rules)
    assert reason in found
    assert bool(found) is bool(reason)


@pytest.mark.parametrize(
    ("tolerations", "first", "is_evicted"),
    [
        pytest.param([CORDON, REMOVAL], frozenset[str](), False, id="came later and tolerates the removal"),
        pytest.param([CORDON, REMOVAL], frozenset({"1"}), True, id="was there"),
        pytest.param([CORDON, REMOVAL], None, True, id="the first pods are not known yet"),
        pytest.param([REMOVAL], frozenset[str](), True, id="does not tolerate the cordon"),
        pytest.param([CORDON], frozenset[str](), True, id="does not tolerate the taint"),
    ],
)
def test_only_a_pod_that_comes_later_and_tolerates_the_removal_ends_with_the_node(
    tolerations: list[dict[str, str]], first: frozenset[str] | None, *, is_evicted: bool
) -> None:
    assert bool(pods_to_evict([pod(spec={"tolerations": tolerations})], first, SINCE)) is is_evicted


@pytest.mark.parametrize(("stated", "seconds"), [(None, 30), (0, 0), (45, 45), (900, 600)])
def test_a_pod_is_evicted_with_its_own_grace_period_of_at_most_ten_minutes(stated: int | None, seconds: int) -> None:
    spec = {} if stated is None else {"terminationGracePeriodSeconds": stated}
    [found] = pods_to_evict([pod(spec=spec)], None, SINCE)
    assert found.grace_seconds == seconds
