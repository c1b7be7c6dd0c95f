"""The memory of requested sizes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from recommender.decisions.record import TargetReference
from recommender.kinds.cluster_size.group_writes import PROVIDER_API, GroupWrites
from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeGroups, ProviderReference
from recommender.kinds.cluster_size.model.memory import LATE, AskedSize, ClusterSizeMemory, RequestedNodes
from recommender.kinds.cluster_size.requested_sizes import believed_sizes, settled_writes, with_asked_sizes
from recommender.outputs.pending_writes import MachineRemoval, MachineToDelete, PendingWrite
from recommender.outputs.scale_results import ScaleResult
from recommender.outputs.write_attempt import ScaleOutcome
from tests.recommender.kinds.cluster_size.options import group
from tests.recommender.kinds.cluster_size.scale_up.harnesses import decided, situation
from tests.recommender.kinds.cluster_size.scale_up.pools import pods

NOW = 1_800_000_000.0
API = "cluster.x-k8s.io/v1beta2"
GROUP = NodeGroup("a", 0, 20, 10, scalable=TargetReference(API, "MachineDeployment", "capi", "workers"))
TARGET = TargetReference(API, "MachineDeployment", "capi", "workers")


def test_a_removal_is_remembered_as_the_last_size() -> None:
    removal = PendingWrite("w", TARGET, 9, NOW + 60, known_size=10, removals=(MachineRemoval("capi", "m1", "n1"),))
    before = ClusterSizeMemory(sizes={"a": 10, "b": 2})

    after, _ = with_asked_sizes(before, GroupWrites((removal,)), NodeGroups((GROUP,)), NOW)

    assert after.sizes == {"a": 9, "b": 2}
    assert after.last_delete is None, "it has not been written yet"


OF_PROVIDER = TargetReference(PROVIDER_API, "NodeGroup", "externalGRPC", "a")
DELETES = AskedSize(3, 5, NOW, removes=True, machines=("x:///1", "x:///2"))
BEFORE = ClusterSizeMemory(asked={"a": DELETES}, requested={"a": RequestedNodes(5, NOW)})


def after_deletion(size: int, *outcomes: ScaleOutcome) -> ClusterSizeMemory:
    """Return the memory 10 seconds after the deletion of two failed machines was requested."""
    group = NodeGroup("a", 0, 20, size, provider=ProviderReference("externalGRPC", deletes_nodes=True))
    by_target = {outcome.write.target: outcome for outcome in outcomes}
    return settled_writes(BEFORE, NodeGroups((group,)), by_target, NOW + 10.0, 60.0)


def deletion(*machines: str) -> PendingWrite:
    return PendingWrite("w", OF_PROVIDER, 3, NOW + 60, known_size=5, machines=tuple(map(MachineToDelete, machines)))


def test_deleted_machines_are_not_awaited_and_start_no_cool_down() -> None:
    for after in (after_deletion(3), after_deletion(5, ScaleOutcome(deletion(*DELETES.machines), ScaleResult.OK))):
        assert after.requested == {"a": RequestedNodes(3, NOW)}
        assert after.deleted_machines == {"x:///1": NOW, "x:///2": NOW}
        assert (after.asked, after.last_delete, after.last_failure) == ({}, None, None)


def test_the_outcome_of_another_write_for_the_same_size_does_not_settle_the_deletion() -> None:
    assert after_deletion(5, ScaleOutcome(deletion(), ScaleResult.OK)) == BEFORE
    assert after_deletion(5, ScaleOutcome(deletion("x:///1"), ScaleResult.OK)) == BEFORE


def test_a_size_in_between_does_not_settle_the_deletion() -> None:
    assert after_deletion(4) == BEFORE


def test_machines_whose_deletion_failed_are_left_alone_and_delay_no_removal() -> None:
    after = after_deletion(5, ScaleOutcome(deletion(*DELETES.machines), ScaleResult.ERROR, message="locked"))
    assert after.deleted_machines == {"x:///1": NOW + 10.0, "x:///2": NOW + 10.0}
    assert (after.requested, after.last_failure) == (BEFORE.requested, None)


def test_machines_replace_a_request_for_the_same_size() -> None:
    group = NodeGroup("a", 0, 20, 5, provider=ProviderReference("externalGRPC", deletes_nodes=True))
    before = ClusterSizeMemory(asked={"a": AskedSize(3, 5, NOW - 5.0)})
    after, _ = with_asked_sizes(before, GroupWrites((deletion(*DELETES.machines),)), NodeGroups((group,)), NOW)
    assert after.asked["a"].machines == DELETES.machines


SHOWN: Final = NodeGroup("a", 0, 20, 3, nodes=("n1", "n2", "n3"), provider=ProviderReference("externalGRPC"))
ACCEPTED: Final = RequestedNodes(5, NOW)


@pytest.mark.parametrize(
    ("changed", "requested", "last_delete", "after_seconds", "size", "is_held"),
    [
        pytest.param({}, ACCEPTED, None, 75.0, 5, False, id="not shown yet"),
        pytest.param({}, ACCEPTED, None, 76.0, 5, True, id="not shown for too long"),
        pytest.param({"target_size": 6}, ACCEPTED, None, 76.0, 6, False, id="larger by now"),
        pytest.param({}, RequestedNodes(5, LATE), None, 76.0, 3, False, id="the nodes are late"),
        pytest.param({}, ACCEPTED, NOW, 10.0, 3, False, id="nodes were removed since"),
        pytest.param({}, ACCEPTED, NOW - 1.0, 10.0, 5, False, id="nodes were removed before"),
        pytest.param({"nodes": ("n1", "n2", "n3", "n4")}, ACCEPTED, None, 10.0, 4, False, id="one node has come"),
        pytest.param({"provider": None}, ACCEPTED, None, 10.0, 3, False, id="not of a provider"),
    ],
)
def test_a_size_that_a_provider_has_accepted_counts_until_it_is_shown(
    changed: dict[str, Any],
    requested: RequestedNodes,
    last_delete: float | None,
    after_seconds: float,
    size: int,
    *,
    is_held: bool,
) -> None:
    memory = ClusterSizeMemory(requested={"a": requested}, last_delete=last_delete)
    [found] = believed_sizes(NodeGroups((replace(SHOWN, **changed),)), memory, NOW + after_seconds).groups
    assert (found.target_size, bool(found.held)) == (size, is_held)


@pytest.mark.parametrize(
    ("group", "began", "seconds"),
    [
        pytest.param(GROUP, None, 60.0, id="of Cluster API, as long as it may be written"),
        pytest.param(SHOWN, None, 150.0, id="of a provider"),
        pytest.param(SHOWN, NOW, 150.0, id="of a provider, by this process"),
        pytest.param(SHOWN, NOW + 100.0, 175.0, id="of a provider, by a former process"),
        pytest.param(SHOWN, NOW + 1.0, 150.0, id="of a provider, by a former process a moment ago"),
    ],
)
def test_a_requested_size_that_is_not_shown_is_forgotten(group: NodeGroup, began: float | None, seconds: float) -> None:
    before = ClusterSizeMemory(asked={"a": AskedSize(group.target_size + 2, group.target_size, NOW)})

    def after(passed: float) -> ClusterSizeMemory:
        return settled_writes(before, NodeGroups((group,)), {}, NOW + passed, 60.0, began=began)

    assert after(seconds) == before
    assert after(seconds + 1.0) == ClusterSizeMemory()


def test_a_group_whose_accepted_size_is_not_shown_for_long_leaves_its_pods_to_another_group() -> None:
    waiting = pods(4)
    first = replace(group("a"), held="its provider has accepted a size of 2 and still shows 0: check the provider")
    answer = decided(situation([first, group("b")], pods=waiting))
    assert answer.increases == {"b": 1}
    assert answer.reasons["a"] == first.held
    assert decided(situation([replace(first, held=""), group("b")], pods=waiting)).increases == {"a": 1}
