from __future__ import annotations

from recommender.kinds.cluster_size.estimator.equivalence import pod_groups
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
from tests.recommender.kinds.cluster_size.builders import controller, pod


def names(pods: list[object]) -> list[list[str]]:
    groups = pod_groups(pods, Snapshot([], []))  # type: ignore[arg-type]
    return [[each.name for each in group.pods] for group in groups]


def test_pods_of_one_controller_with_equal_labels_and_spec_are_one_group() -> None:
    pods = [
        pod("a", controller="web"),
        pod("b", controller="db"),
        pod("c", controller="web"),
        pod("d", cpu="200m", controller="web"),
        pod("e", labels={"app": "web"}, controller="web"),
        pod("f", controller="web", namespace="other"),
    ]
    assert names([*pods]) == [["a", "c"], ["b"], ["d"], ["e"], ["f"]]


def test_pods_without_a_controller_and_of_daemon_sets_are_single_groups() -> None:
    agent = controller("agent", "DaemonSet")
    declared = {"cluster-autoscaler.kubernetes.io/daemonset-pod": "true"}
    pods = [
        pod("a"),
        pod("b"),
        pod("c", controller=agent),
        pod("d", controller=agent),
        pod("e", controller="web", annotations=declared),
        pod("f", controller="web", annotations=declared),
    ]
    assert names([*pods]) == [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]


def test_a_controller_has_at_most_ten_groups_and_then_single_pods() -> None:
    pods = [pod(f"{number}-{copy}", cpu=f"{number}m", controller="web") for copy in "ab" for number in range(1, 13)]
    groups = names([*pods])
    assert groups[:10] == [[f"{number}-a", f"{number}-b"] for number in range(1, 11)]
    assert groups[10:] == [["11-a"], ["12-a"], ["11-b"], ["12-b"]]
