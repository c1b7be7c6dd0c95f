from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.cluster.values.state import ControllerReference
from adapter.nodes.hotspots.crowded_workloads import anti_affinity, crowded_replicas
from adapter.nodes.hotspots.exposition import hot_text
from tests.adapter.nodes.extender.snapshots import nodes_snapshot
from tests.adapter.nodes.hotspots.pods import pod

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterPod
    from adapter.nodes.model.nodes_snapshot import NodesSnapshot


def replicas(node: str, count: int, **changes: Any) -> list[ClusterPod]:  # noqa: ANN401 - fields of a pod
    return [
        dataclasses.replace(
            pod(f"{node}-{number}"), node=node, labels={"app": "web", "pod-template-hash": "5d8f"}, **changes
        )
        for number in range(count)
    ]


def of(**pods_by_node: list[ClusterPod]) -> NodesSnapshot:
    return nodes_snapshot(
        {"cpu": [0.9, 0.9, 0.2]}, pods_by_node={name.replace("_", "-"): pods for name, pods in pods_by_node.items()}
    )


def named(current: NodesSnapshot, *hot: str) -> list[tuple[str, int, int, tuple[str, ...]]]:
    found = crowded_replicas(current, hot)
    return [(f"{each.namespace}/{each.controller}", each.on_hot_nodes, each.replicas, each.nodes) for each in found]


def test_a_workload_with_most_of_its_replicas_on_hot_nodes_is_named_with_its_nodes_and_an_affinity() -> None:
    current = of(node_1=replicas("node-1", 2), node_2=replicas("node-2", 1), node_3=replicas("node-3", 1))
    assert named(current, "node-1", "node-2") == [("shop/ReplicaSet/web", 3, 4, ("node-1", "node-2"))]
    (found,) = crowded_replicas(current, ["node-1", "node-2"])
    assert anti_affinity(found.labels) == {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 100,
                    "podAffinityTerm": {
                        "labelSelector": {"matchLabels": {"app": "web"}},
                        "topologyKey": "kubernetes.io/hostname",
                    },
                }
            ]
        }
    }
    assert b'_ratio{controller="ReplicaSet/web",controller_namespace="shop"} 0.75\n' in hot_text(["node-1"], [found])


@pytest.mark.parametrize("leader_on", ["node_1", "node_3"])
def test_the_affinity_has_the_labels_that_all_replicas_share(leader_on: str) -> None:
    """Operators of databases mark the leader, and an affinity to its label alone would keep no replicas apart."""
    pods = {"node_1": replicas("node-1", 2), "node_3": replicas("node-3", 2)}
    leader = pods[leader_on][-1]
    pods[leader_on][-1] = dataclasses.replace(leader, labels={**leader.labels, "role": "leader", "app": "web"})
    (found,) = crowded_replicas(of(**pods), ["node-1"])
    assert found.labels == {"app": "web"}


DAEMON = ControllerReference("apps/v1", "DaemonSet", "logs", "uid-logs")


@pytest.mark.parametrize(
    ("pods", "hot"),
    [
        ({"node_1": replicas("node-1", 2), "node_3": replicas("node-3", 3)}, ["node-1"]),
        ({"node_1": replicas("node-1", 1)}, ["node-1"]),
        ({"node_1": replicas("node-1", 2)}, []),
        ({"node_1": replicas("node-1", 2)}, ["node-1", "node-2", "node-3"]),
        ({"node_1": replicas("node-1", 2, controller=DAEMON)}, ["node-1"]),
        ({"node_1": replicas("node-1", 2, controller=None)}, ["node-1"]),
        ({"node_1": replicas("node-1", 2, is_terminating=True)}, ["node-1"]),
        # Of another namespace, which says that it belongs to the same controller.
        ({"node_1": [*replicas("node-1", 1), *replicas("node-1", 1, namespace="lab")]}, ["node-1"]),
    ],
    ids=[
        "fewer than half",
        "one replica",
        "no hot node",
        "all are hot",
        "DaemonSet",
        "no controller",
        "ending",
        "another namespace",
    ],
)
def test_workloads_that_spreading_would_not_help_are_not_named(
    pods: dict[str, list[ClusterPod]], hot: list[str]
) -> None:
    assert named(of(**pods), *hot) == []


def test_a_workload_without_its_own_labels_has_no_affinity() -> None:
    assert anti_affinity({}) is None


def test_at_most_100_controllers_are_named_with_the_most_replicas_first() -> None:
    crowd = [
        dataclasses.replace(each, controller=ControllerReference("apps/v1", "ReplicaSet", f"r{name}", f"uid-{name}"))
        for name in range(120)
        for each in replicas("node-1", 3 if name == 119 else 2)
    ]
    found = named(of(node_1=crowd), "node-1")
    assert len(found) == 100
    assert found[0] == ("shop/ReplicaSet/r119", 3, 3, ("node-1",))
