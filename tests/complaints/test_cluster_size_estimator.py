"""Requests of users of Cluster Autoscaler that the estimates meet."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL, PodScheduling, PodTerm
from adapter.foundation.objects.selectors import parse_selector
from recommender.kinds.cluster_size.estimator.binpacking import estimate
from recommender.kinds.cluster_size.estimator.equivalence import pod_groups
from recommender.kinds.cluster_size.model.groups import NodeTemplate
from recommender.kinds.cluster_size.predicates.filters import PodFilter
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
from tests.recommender.kinds.cluster_size.builders import node, pod

if TYPE_CHECKING:
    import pytest

    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.predicates.snapshot import NodeInfo


def copies(first: ClusterPod, count: int) -> list[ClusterPod]:
    return [replace(first, name=f"{first.name}-{number}") for number in range(count)]


def test_pods_with_anti_affinity_get_one_node_each_and_no_more__autoscaler_4099() -> None:
    term = PodTerm(HOSTNAME_LABEL, parse_selector("app=db"), frozenset({"default"}))
    repelling = pod("db", "1", labels={"app": "db"}, controller="db", scheduling=PodScheduling(anti_affinity=(term,)))
    beside = pod("web", "1", labels={"app": "web"}, controller="web")
    snapshot = Snapshot([], [])
    groups = pod_groups([*copies(repelling, 10), *copies(beside, 30)], snapshot)
    found = estimate(snapshot, groups, NodeTemplate(node("template", "4")), name_prefix="new", max_nodes=5000)
    assert (found.node_count, len(found.pods)) == (10, 40)


def test_thousands_of_pending_pods_are_checked_against_each_node_only_a_few_times__autoscaler_3835(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    room = PodFilter.room

    def counted(judge: PodFilter, info: NodeInfo, at_most: int) -> int:
        asked.append(info.node.name)
        return room(judge, info, at_most)

    monkeypatch.setattr(PodFilter, "room", counted)
    snapshot = Snapshot([], [])
    pods = [
        each
        for kind in range(5)
        for each in copies(pod(f"job-{kind}", f"{kind + 1}00m", controller=f"job-{kind}"), 800)
    ]
    found = estimate(
        snapshot, pod_groups(pods, snapshot), NodeTemplate(node("template", "4")), name_prefix="new", max_nodes=5000
    )
    assert len(found.pods) == 4000
    assert len(asked) <= 3 * 5 * found.node_count
