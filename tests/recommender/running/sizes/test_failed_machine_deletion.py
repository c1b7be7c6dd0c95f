"""The last checks before a provider is requested to delete a failed machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.values.state import ClusterState, Unknown
from recommender.cluster_size.node_groups.protocol import InstanceState, ProviderInstance
from recommender.outputs.pending_writes import MachineToDelete, PendingWrite
from recommender.outputs.scale_results import ScaleResult
from recommender.running.sizes.failed_machine_deletion import nodes_of
from tests.recommender.running.sizes.provider_harness import GROUP, ProviderHarness

if TYPE_CHECKING:
    from collections.abc import Callable

    from recommender.outputs.write_attempt import ScaleOutcome

FAILED = MachineToDelete("x:///3", is_creation_error=True)


def harness_with_a_failed_machine() -> ProviderHarness:
    harness = ProviderHarness()
    harness.group.machines.append("x:///3")
    harness.group.answers["nodes"] = [
        *(ProviderInstance(each) for each in ("x:///1", "x:///2")),
        ProviderInstance("x:///3", InstanceState.CREATING, "OutOfResources"),
    ]
    return harness


def delete(harness: ProviderHarness, machine: MachineToDelete = FAILED) -> ScaleOutcome:
    write = PendingWrite("nodes", GROUP, 2, harness.now + harness.wall_ahead + 60.0, "", 3, machines=(machine,))
    harness.writer.follow_writes("nodes", (write,))
    harness.writer.step()
    return harness.outcomes[-1]


def test_a_failed_machine_is_deleted() -> None:
    harness = harness_with_a_failed_machine()
    outcome = delete(harness)
    assert (outcome.result, harness.group.changes) == (ScaleResult.OK, [("delete", ["x:///3"])])


@pytest.mark.parametrize("state", [InstanceState.RUNNING, InstanceState.CREATING])
def test_a_machine_that_has_not_become_a_node_is_deleted_without_an_error_of_its_provider(state: InstanceState) -> None:
    harness = harness_with_a_failed_machine()
    _state(harness, state)
    outcome = delete(harness, MachineToDelete("x:///3"))
    assert (outcome.result, harness.group.changes) == (ScaleResult.OK, [("delete", ["x:///3"])])


@pytest.mark.parametrize(("is_creation_error", "reason"), [(True, "create-error"), (False, "unregistered")])
def test_a_provider_is_told_why_a_machine_has_no_node(*, is_creation_error: bool, reason: str) -> None:
    [found] = nodes_of((MachineToDelete("x:///3", is_creation_error=is_creation_error),))
    assert found.annotations == {"k8s.io/cluster-autoscaler/fake-node-reason": reason}


def _state(harness: ProviderHarness, state: InstanceState, error: str = "") -> None:
    joined = (ProviderInstance(each) for each in ("x:///1", "x:///2"))
    harness.group.answers["nodes"] = [*joined, ProviderInstance("x:///3", state, error)]


def _let_nodes_age(harness: ProviderHarness) -> None:
    nodes = harness.seen()
    harness.seen = lambda: nodes  # type: ignore[method-assign]
    harness.now += 46.0


REFUSALS: dict[str, tuple[Callable[[ProviderHarness], object], str]] = {
    "it has joined": (lambda harness: harness.api.add_node("n3", "x:///3"), "x:///3 is a node"),
    "it has joined under its name": (lambda harness: harness.api.add_node("3", "x:///other"), "x:///3 is a node"),
    "a node has no id yet": (lambda harness: harness.api.add_node("n3", ""), "node n3 has no spec.providerID"),
    "it is being deleted": (lambda harness: _state(harness, InstanceState.DELETING), "is being deleted already"),
    "it runs by now": (lambda harness: _state(harness, InstanceState.RUNNING), "x:///3 can be created after all"),
    "it runs in spite of an error": (
        lambda harness: _state(harness, InstanceState.RUNNING, "OutOfResources"),
        "x:///3 can be created after all",
    ),
    "it is created after all": (lambda harness: _state(harness, InstanceState.CREATING), "can be created after all"),
    "it is gone": (
        lambda harness: harness.group.answers.update(nodes=[ProviderInstance("x:///1")]),
        "x:///3 is gone, or is being deleted already",
    ),
    "another size by now": (lambda harness: harness.group.answers.update(target_size=4), "its size is now 4"),
    "a higher minimum by now": (lambda harness: harness.group.answers.update(min_size=3), "2 is outside of its limits"),
    "an earlier list": (lambda harness: harness.group.answers.update(age_seconds=5.0), "is an earlier one"),
    "nodes are not known": (
        lambda harness: setattr(harness, "seen", lambda: ClusterState(nodes=Unknown("away"))),
        "the nodes of the cluster are not known now",
    ),
    "nodes are not confirmed": (_let_nodes_age, "the nodes of the cluster are not known now"),
}


@pytest.mark.parametrize(("change", "message"), REFUSALS.values(), ids=REFUSALS)
def test_a_change_since_the_decision_stops_the_deletion_of_the_machine(
    change: Callable[[ProviderHarness], object], message: str
) -> None:
    harness = harness_with_a_failed_machine()
    change(harness)
    harness.begin()
    outcome = delete(harness)
    assert (outcome.result, harness.group.changes) == (ScaleResult.REFUSED, [])
    assert message in outcome.message


@pytest.mark.parametrize("lack", ["permits", "stores"])
def test_no_machine_is_deleted_without_the_lease_or_a_stored_memory(lack: str) -> None:
    harness = harness_with_a_failed_machine()
    setattr(harness, lack, False)
    delete(harness)
    assert harness.group.changes == []
