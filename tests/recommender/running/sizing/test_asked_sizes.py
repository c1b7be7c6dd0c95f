"""What is remembered of the sizes that are asked for."""

from __future__ import annotations

from recommender.cluster_size.model.groups import NodeGroup, NodeGroups, ScalableReference
from recommender.cluster_size.model.memory import ClusterSizeMemory
from recommender.cluster_size.node_groups.cluster_api.removals import MachineRemoval
from recommender.decisions.record import TargetReference
from recommender.outputs.sizes.group_wishes import GroupWishes
from recommender.outputs.wishes import Wish
from recommender.running.sizing.writes import remembered_writes

NOW = 1_800_000_000.0
API = "cluster.x-k8s.io/v1beta2"
GROUP = NodeGroup(
    "a", 0, 20, 10, scalable=ScalableReference(API, "machinedeployments", "MachineDeployment", "capi", "workers")
)
TARGET = TargetReference(API, "MachineDeployment", "capi", "workers")


def test_a_removal_is_a_change_and_its_size_is_the_last_one() -> None:
    removal = Wish("w", TARGET, 9, NOW + 60, known_size=10, removals=(MachineRemoval("capi", "m1", "n1"),))
    before = ClusterSizeMemory(sizes={"a": 10, "b": 2}, changes=(NOW - 600,))

    after = remembered_writes(before, GroupWishes((removal,)), NodeGroups((GROUP,)), NOW)

    assert after.sizes == {"a": 9, "b": 2}
    assert after.changes == (NOW - 600, NOW)
    assert after.last_delete is None, "it has not been written yet"


def test_a_change_of_sizes_in_the_same_decision_counts_once() -> None:
    removal = Wish("w", TARGET, 9, NOW + 60, known_size=10, removals=(MachineRemoval("capi", "m1", "n1"),))
    before = ClusterSizeMemory(sizes={"a": 10}, changes=(NOW,))

    after = remembered_writes(before, GroupWishes((removal,)), NodeGroups((GROUP,)), NOW)

    assert after.changes == (NOW,)
