"""The work of finding places grows with the number of different requests, and not with that of their workloads."""

from __future__ import annotations

import pytest

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL, PodScheduling, SpreadConstraint, Toleration
from adapter.foundation.objects.selectors import parse_selector
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
from recommender.kinds.cluster_size.scale_down.block_free_resources import BLOCK
from recommender.kinds.cluster_size.scale_down.pod_places import PodPlaces
from tests.recommender.kinds.cluster_size.builders import node, pod
from tests.recommender.kinds.cluster_size.scale_down.harness import Harness


def test_a_full_node_is_checked_once_for_all_workloads_with_the_same_requests() -> None:
    full = [f"full-{number}" for number in range(BLOCK - 1)]
    workloads = [f"app-{number}" for number in range(10)]
    pods = [pod(name, "1", "1Gi", labels={"app": name}) for name in workloads]
    snapshot = Snapshot(
        [*(node(name, "1", "16Gi") for name in full), node("free", "32", "64Gi")],
        [pod(f"on-{name}", "500m", "1Gi", node=name) for name in full],
    )
    places = PodPlaces(snapshot, [*full, "free"], most_checks=2 * BLOCK)
    places.begin(())
    for one in pods:
        shape = snapshot.shape(one)
        assert places.prepare(shape) is None
        assert places.place(one, shape, "") == "free"
    assert not places.is_exhausted


def test_workloads_with_equal_requests_and_different_node_selectors_keep_their_own_nodes() -> None:
    snapshot = Snapshot([node(name, "4", "8Gi", labels={"disk": name}) for name in ("hdd", "ssd")], [])
    places = PodPlaces(snapshot, ["hdd", "ssd"], most_checks=100)
    places.begin(())
    for disk in ("ssd", "hdd", "ssd"):
        one = pod(f"on-{disk}-{len(snapshot.nodes[disk].pods)}", "1", "1Gi", scheduling=selecting(disk))
        shape = snapshot.shape(one)
        assert places.prepare(shape) is None
        assert places.place(one, shape, "") == disk


def test_pods_that_name_their_node_group_are_tried_on_its_nodes_alone() -> None:
    groups = [f"g{number}" for number in range(50)]
    names = [f"{group}-{number}" for group in groups for number in range(4)]
    snapshot = Snapshot([node(name, "4", "8Gi", labels={"disk": name.partition("-")[0]}) for name in names], [])
    places = PodPlaces(snapshot, names, most_checks=2 * len(groups))
    places.begin(())
    for group in groups:
        one = pod(group, "1", "1Gi", scheduling=selecting(group))
        shape = snapshot.shape(one)
        assert places.prepare(shape) is None
        assert places.place(one, shape, "") == f"{group}-0"
    assert not places.is_exhausted


def selecting(disk: str) -> PodScheduling:
    return PodScheduling(node_selector=(("disk", disk),))


@pytest.mark.parametrize(
    ("policy", "tolerations", "removed"),
    [
        pytest.param("Ignore", (), [], id="ignored"),
        pytest.param("Honor", (), ["n0", "n1"], id="honored"),
        pytest.param("Honor", (Toleration("", "Exists"),), [], id="tolerated"),
    ],
)
def test_a_drained_node_is_no_domain_of_a_spread_constraint_that_honors_its_taint(
    policy: str, tolerations: tuple[Toleration, ...], removed: list[str]
) -> None:
    spread = SpreadConstraint(HOSTNAME_LABEL, 1, parse_selector("app=web"), honors_node_taints=policy == "Honor")
    scheduling = PodScheduling(spread=(spread,), tolerations=tolerations)
    web = (("n0", "p0"), ("n1", "p1"), ("n2", "p2"))
    pods = [pod(its, node=on, labels={"app": "web"}, controller="web", scheduling=scheduling) for on, its in web]
    decision = Harness(tuple(node(on) for on, _ in web), tuple(pods)).decide()
    assert [one.node for one in decision.removals] == removed
