"""Decisions about a provider's groups: which sizes are written, accepted and awaited."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.values.state import ClusterState, Observed, Unknown
from adapter.foundation.cluster.values.storage import Storage
from recommender.decisions.inputs import Inputs
from recommender.decisions.memory import Memory
from recommender.decisions.policy_settings import Output, RecommendationPolicy
from recommender.decisions.record import TargetReference
from recommender.kinds.cluster_size.group_writes import PROVIDER_API
from recommender.kinds.cluster_size.health.failed_removals import FAILED_REMOVAL
from recommender.kinds.cluster_size.model.groups import NodeGroup, ProviderReference
from recommender.kinds.cluster_size.model.size_settings import (
    ClusterSizeSettings,
    ExternalGrpcGroups,
    NodeGroupSources,
    PluginGroups,
    ScaleDownSettings,
)
from recommender.kinds.cluster_size.node_groups.plugin_reading import PluginGroup, PluginReading
from recommender.kinds.cluster_size.node_groups.protocol import ProviderInstance
from recommender.kinds.cluster_size.node_groups.watched_kinds import STATUS_CONFIG_MAP
from recommender.outputs.pending_writes import NodeRemoval
from recommender.outputs.scale_results import ScaleResult
from recommender.outputs.write_attempt import ScaleOutcome
from tests.recommender.kinds.cluster_size.builders import node, pod
from tests.recommender.kinds.cluster_size.deciding import decide_sizes, size_memory, writes_of
from tests.recommender.kinds.cluster_size.test_decide import NOW, WEB

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterNode
    from recommender.decisions.loop import Decision
    from recommender.outputs.pending_writes import PendingWrite

POLICY = RecommendationPolicy("workers", "clusterSize", outputs=frozenset({Output.SCALE}))
EXTERNAL = ExternalGrpcGroups("localhost:1", delete_nodes=True)
DOWN = ScaleDownSettings(unneeded_seconds=0.0, delay_after_add_seconds=0.0)
SETTINGS = ClusterSizeSettings(NodeGroupSources(external_grpc=EXTERNAL), scale_down=DOWN)
TARGET = TargetReference(PROVIDER_API, "NodeGroup", "externalGRPC", "a")
NODES = tuple(node(f"n{number}", provider_id=f"x:///{number}", created=1.0) for number in (1, 2, 3))


def reading(target: int, *, problem: str = "", nodes: tuple[ClusterNode, ...] = NODES) -> PluginReading:
    machines = tuple(ProviderInstance(each.provider_id) for each in nodes)
    group = PluginGroup("a", 1, 10, target, machines, template=NODES[0], problem=problem, has_writes=True)
    return PluginReading("externalGRPC", (group,), {each.name: "a" for each in nodes})


def facts(nodes: tuple[ClusterNode, ...], *, pending: int, now: float, loads: int = 3) -> ClusterState:
    """Return full nodes, as many as `loads`, and pods that need a node each."""
    pods = [
        *(
            pod(f"web-{each.name}", "4", "1Gi", namespace="shop", node=each.name, controller="web", created=2.0)
            for each in nodes[:loads]
        ),
        *(
            pod(f"wait-{number}", "4", "1Gi", namespace="shop", controller="web", created=2.0)
            for number in range(pending)
        ),
    ]
    return ClusterState(
        nodes=Observed(nodes, now),
        pods=Observed(tuple(pods), now),
        workloads=Observed((WEB,), now),
        disruption_budgets=Observed((), now),
        namespace_labels=Observed({"shop": {}}, now),
        storage=Storage(Observed({}, now), Observed({}, now), Observed({}, now), Observed({}, now)),
    )


def decided(
    now: float,
    memory: Memory,
    stated: PluginReading,
    *outcomes: ScaleOutcome,
    pending: int = 2,
    began: float = NOW - 100.0,
    loads: int = 3,
    nodes: tuple[ClusterNode, ...] = NODES,
) -> Decision:
    writes = {each.write.target: each for each in outcomes}
    known = {"waits": True, "writes_sizes": True, "writes": writes, "providers": (stated,), "began": began}
    inputs = Inputs(facts(nodes, pending=pending, now=now, loads=loads))
    return decide_sizes(POLICY, SETTINGS, inputs, memory, now, **known)


def last_of(decision: Decision, seconds: float, stated: PluginReading) -> Decision:
    """Return the last of the decisions that are made in so many seconds; time without decisions would not count."""
    for passed in range(60, int(seconds), 60):
        decision = decided(NOW + passed, decision.memory, stated)
    return decided(NOW + seconds, decision.memory, stated)


def pending_writes_of(decision: Decision) -> tuple[PendingWrite, ...]:
    return writes_of(decision).groups.writes


def test_a_group_of_a_provider_grows_by_a_single_write() -> None:
    [write] = pending_writes_of(decided(NOW, Memory(), reading(3)))
    assert (write.target, write.replicas, write.known_size, write.waits_until) == (TARGET, 5, 3, 0.0)


@pytest.mark.parametrize("age", [0.0, 20.0])
def test_a_write_is_valid_until_what_it_was_decided_from_is_stale(age: float) -> None:
    known = {"waits": True, "writes_sizes": True, "providers": (reading(3),), "began": NOW - 100.0}
    inputs = Inputs(facts(NODES, pending=2, now=NOW - age))
    decision = decide_sizes(POLICY, SETTINGS, inputs, Memory(), NOW, **known)
    [write] = pending_writes_of(decision)
    assert write.valid_until == writes_of(decision).valid_until == NOW - age + POLICY.stale_after_seconds


@pytest.mark.parametrize("seconds", [10.0, 300.0, 890.0])
def test_an_accepted_size_counts_although_the_provider_does_not_show_it_yet(seconds: float) -> None:
    first = decided(NOW, Memory(), reading(3))
    [write] = pending_writes_of(first)
    second = decided(NOW + 1.0, first.memory, reading(3), ScaleOutcome(write, ScaleResult.OK))
    assert pending_writes_of(second) == ()
    assert pending_writes_of(decided(NOW + seconds, second.memory, reading(3))) == ()


def test_nodes_that_the_provider_never_creates_are_late_and_the_group_backs_off() -> None:
    first = decided(NOW, Memory(), reading(3))
    [write] = pending_writes_of(first)
    second = decided(NOW + 1.0, first.memory, reading(3), ScaleOutcome(write, ScaleResult.OK))
    late = last_of(second, 905.0, reading(3))
    assert "2 requested nodes were not ready within 900 s" in size_memory(late).back_offs["a"].reason


def test_late_nodes_are_subtracted_from_the_size() -> None:
    first = decided(NOW, Memory(), reading(3))
    [write] = pending_writes_of(first)
    second = decided(NOW + 1.0, first.memory, reading(5), ScaleOutcome(write, ScaleResult.OK))
    assert pending_writes_of(second) == ()
    [back] = pending_writes_of(last_of(second, 905.0, reading(5)))
    assert (back.replicas, back.known_size, back.node_removals) == (3, 5, ())


def test_the_request_of_a_killed_process_is_not_repeated_at_once() -> None:
    killed = decided(NOW, Memory(), reading(3))
    began = NOW + 2.0
    [write] = pending_writes_of(decided(began, killed.memory, reading(3), began=began))
    assert write.waits_until == began + 75.0
    more = decided(began + 1.0, killed.memory, reading(3), began=began, pending=4)
    again = decided(began + 2.0, more.memory, reading(3), began=began, pending=4)
    assert [(each.replicas, each.waits_until) for each in pending_writes_of(again)] == [(7, began + 75.0)]
    for passed in range(10, 75, 10):
        again = decided(began + passed, again.memory, reading(3), began=began, pending=4)
        assert [each.waits_until for each in pending_writes_of(again)] == [began + 75.0], (
            "however old the request is by now"
        )
    assert pending_writes_of(decided(began + 3.0, more.memory, reading(5), began=began)) == (), (
        "the killed process had requested it"
    )


@pytest.mark.parametrize("ahead", [3.0, 3600.0])
def test_the_request_of_a_killed_process_with_a_clock_ahead_is_waited_for(ahead: float) -> None:
    memory = decided(NOW + ahead, Memory(), reading(3)).memory
    for passed in (0.0, 10.0, 60.0):
        again = decided(NOW + passed, memory, reading(3), began=NOW)
        assert [each.waits_until for each in pending_writes_of(again)] == [NOW + 75.0]
        memory = again.memory


def test_a_write_of_the_same_process_is_repeated_without_waiting() -> None:
    first = decided(NOW, Memory(), reading(3), began=NOW)
    assert [
        each.waits_until for each in pending_writes_of(decided(NOW + 1.0, first.memory, reading(3), began=NOW))
    ] == [0.0]


def test_unneeded_nodes_are_removed_by_name_down_to_the_minimum() -> None:
    first = decided(NOW, Memory(), reading(3), pending=0, loads=0)
    [write] = pending_writes_of(decided(NOW + 10.0, first.memory, reading(3), pending=0, loads=0))
    assert (write.replicas, len(write.node_removals)) == (1, 2)
    assert all(isinstance(each, NodeRemoval) for each in write.node_removals)


def test_without_delete_nodes_no_node_is_removed() -> None:
    settings = replace(SETTINGS, node_groups=NodeGroupSources(external_grpc=replace(EXTERNAL, delete_nodes=False)))
    inputs = Inputs(facts(NODES, pending=0, now=NOW, loads=0))
    memory = Memory()
    for seconds in (0.0, 10.0):
        found = decide_sizes(
            POLICY, settings, inputs, memory, NOW + seconds, waits=True, writes_sizes=True, providers=(reading(3),)
        )
        memory = found.memory
    assert pending_writes_of(found) == ()


def test_a_failed_removal_delays_further_removals() -> None:
    first = decided(NOW, Memory(), reading(3), pending=0, loads=0)
    failed = (*NODES[:2], replace(NODES[2], annotations={FAILED_REMOVAL: str(int(NOW + 5.0))}))
    assert pending_writes_of(decided(NOW + 10.0, first.memory, reading(3), pending=0, loads=0, nodes=failed)) == ()
    later = decided(NOW + 190.0, first.memory, reading(3), pending=0, loads=0, nodes=failed)
    assert len(pending_writes_of(later)) == 1


def test_a_group_with_a_problem_is_not_written() -> None:
    found = writes_of(decided(NOW, Memory(), reading(3, problem="NodeGroupNodes: UNKNOWN: x"))).groups
    assert found.writes == ()


def test_groups_of_a_plugin_are_read_only_unless_writes_are_enabled() -> None:
    stated = replace(reading(3), provider="plugin/cloud")
    for writes in (False, True):
        sources = NodeGroupSources(plugin=PluginGroups("cloud", writes=writes))
        inputs = Inputs(facts(NODES, pending=2, now=NOW))
        settings = replace(SETTINGS, node_groups=sources)
        found = writes_of(
            decide_sizes(POLICY, settings, inputs, Memory(), NOW, waits=True, writes_sizes=True, providers=(stated,))
        ).groups
        assert len(found.writes) == int(writes)
        assert ("read-only" in found.refusals.get("a", "")) != writes


def test_nothing_is_written_while_it_is_unknown_whether_cluster_autoscaler_runs() -> None:
    objects = {STATUS_CONFIG_MAP: Unknown("403: the right to configmaps is missing")}
    inputs = Inputs(replace(facts(NODES, pending=2, now=NOW), objects=objects))
    found = writes_of(
        decide_sizes(POLICY, SETTINGS, inputs, Memory(), NOW, waits=True, writes_sizes=True, providers=(reading(3),))
    ).groups
    assert found.writes == ()
    assert "it is not known whether a Cluster Autoscaler manages it" in found.refusals["a"]


@pytest.mark.parametrize(("size", "surely"), [(4, 3), (3, 3), (2, 1)])
def test_a_size_that_counts_too_few_nodes_may_count_those_that_go(size: int, surely: int) -> None:
    its = NodeGroup("a", 1, 10, size, ("a", "b", "c", "d"), provider=ProviderReference("externalGRPC"), deleting=("a",))
    assert its.sure_size == surely


@pytest.mark.parametrize("is_answered", [True, False], ids=["answered", "unanswered"])
def test_nodes_that_came_during_an_outage_are_not_awaited_again(*, is_answered: bool) -> None:
    first = decided(NOW, Memory(), reading(3))
    [write] = pending_writes_of(first)
    come = tuple(node(f"n{number}", provider_id=f"x:///{number}", created=NOW + 60.0) for number in (4, 5))
    nodes, now = (*NODES, *come), NOW + 300.0
    outcomes = (ScaleOutcome(write, ScaleResult.OK),) if is_answered else ()
    began = NOW - 100.0 if is_answered else now
    after = decided(now, first.memory, reading(5, nodes=nodes), *outcomes, began=began, loads=5, nodes=nodes, pending=1)
    assert [each.replicas for each in pending_writes_of(after)] == [6]
    assert size_memory(after).requested == {}
