"""The memory of requested sizes."""

from __future__ import annotations

from recommender.decisions.record import TargetReference
from recommender.kinds.cluster_size.group_wishes import GroupWishes
from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeGroups, ScalableReference
from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory
from recommender.kinds.cluster_size.requested_sizes import with_asked_sizes
from recommender.outputs.wishes import MachineRemoval, Wish

NOW = 1_800_000_000.0
API = "cluster.x-k8s.io/v1beta2"
GROUP = NodeGroup(
    "a", 0, 20, 10, scalable=ScalableReference(API, "machinedeployments", "MachineDeployment", "capi", "workers")
)
TARGET = TargetReference(API, "MachineDeployment", "capi", "workers")


def test_a_removal_is_a_change_and_its_size_is_the_last_one() -> None:
    removal = Wish("w", TARGET, 9, NOW + 60, known_size=10, removals=(MachineRemoval("capi", "m1", "n1"),))
    before = ClusterSizeMemory(sizes={"a": 10, "b": 2})

    after, has_removals = with_asked_sizes(before, GroupWishes((removal,)), NodeGroups((GROUP,)), NOW)

    assert after.sizes == {"a": 9, "b": 2}
    assert has_removals
    assert after.last_delete is None, "it has not been written yet"
