"""A cluster size decision as a whole: what is remembered, held and refused."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.values.state import ClusterState, LeftOut, ObjectKind, Observed, Unknown
from adapter.foundation.cluster.values.storage import Storage
from adapter.foundation.cluster.values.workloads import DisruptionBudget, WorkloadFacts
from adapter.foundation.objects.selectors import parse_selector
from recommender.decisions.inputs import Inputs
from recommender.decisions.memory import Memory
from recommender.decisions.policy_settings import Brakes, Direction, Pause, RecommendationPolicy
from recommender.decisions.record import Status
from recommender.decisions.texts.record_texts import message_without_notes
from recommender.kinds.cluster_size.known_cluster import known_cluster
from recommender.kinds.cluster_size.model.answer import answer_of
from recommender.kinds.cluster_size.model.memory import BackOff, ClusterSizeMemory, RequestedNodes
from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings, NodeGroupSources, StaticGroup
from recommender.running.memory.memory_document import decode_memory, encode_memory
from recommender.running.memory.significant_changes import changed_enough_to_write
from tests.recommender.kinds.cluster_size.builders import node, pod
from tests.recommender.kinds.cluster_size.deciding import decide_sizes, size_memory

if TYPE_CHECKING:
    from recommender.decisions.loop import Decision
    from recommender.kinds.cluster_size.model.answer import ClusterSizeAnswer

NOW = 1_800_000_000.0
MINUTE = 60.0
GIB = 1 << 30
POOL = {"pool": "a"}
SETTINGS = ClusterSizeSettings(
    NodeGroupSources(
        static=(
            StaticGroup(
                "a",
                0,
                9,
                parse_selector("pool=a"),
                price=0.5,
                capacity={"cpu": 4000, "memory": 16 * GIB, "pods": 110},
                labels=POOL,
            ),
        )
    )
)
NOTHING, FREE = Memory(), Brakes()
POLICY = RecommendationPolicy("workers", "clusterSize")
MACHINES = ObjectKind("cluster.x-k8s.io", "machines", "Machine")
AWAITED = Unknown("machines: the first list has not arrived yet", is_awaited=True)
WEB = WorkloadFacts("ReplicaSet", "shop", "web", "uid-of-ReplicaSet-web", 9, None, "not needed")


def cluster(now: float, running: int = 3, pending: int = 0) -> ClusterState:
    """Return three nodes, of which some are full, and pods without a node."""
    nodes = tuple(node(f"n{number}", labels=POOL, created=1.0) for number in range(3))
    pods = [
        pod(f"web-{number}", "4", "1Gi", namespace="shop", node=f"n{number}", controller="web", created=2.0)
        for number in range(running)
    ]
    pods += [
        pod(f"wait-{number}", "4", "1Gi", namespace="shop", controller="web", created=2.0) for number in range(pending)
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
    state: ClusterState,
    now: float = NOW,
    memory: Memory = NOTHING,
    *,
    brakes: Brakes = FREE,
    last: ClusterSizeAnswer | None = None,
) -> Decision:
    return decide_sizes(replace(POLICY, brakes=brakes), SETTINGS, Inputs(state), memory, now, waits=True, last=last)


def decided_each_minute(minutes: int, memory: Memory = NOTHING) -> Memory:
    """Return the memory after decisions at `NOW` and each minute after it."""
    for minute in range(minutes + 1):
        at = NOW + minute * MINUTE
        memory = decided(cluster(at, running=2), at, memory).memory
    return memory


def restarted(memory: Memory) -> Memory:
    """Return the memory that a process finds after it was killed."""
    return decode_memory("workers", encode_memory("workers", memory)).memory


def sizes(decision: Decision) -> tuple[int, int]:
    answer = answer_of(decision.record)
    assert answer is not None
    [group] = answer.groups
    return group.recommended, group.after_removals


def test_pending_pods_make_the_group_grow() -> None:
    found = decided(cluster(NOW, pending=2))

    assert sizes(found) == (5, 5)
    assert found.record.status is Status.OK
    assert size_memory(found).sizes == {"a": 5}


def test_a_removal_timer_survives_a_restart_of_the_process() -> None:
    first = decided(cluster(NOW, running=2))
    later = decided(cluster(NOW + 9 * MINUTE, running=2), NOW + 9 * MINUTE, decided_each_minute(8))

    after = decided(cluster(NOW + 10.1 * MINUTE, running=2), NOW + 10.1 * MINUTE, restarted(later.memory))

    assert [sizes(each) for each in (first, later, after)] == [(3, 3), (3, 3), (3, 2)]
    answer = answer_of(after.record)
    assert answer is not None
    assert [removal.node for removal in answer.removals if removal.is_due] == ["n2"]


def test_a_removal_timer_does_not_run_while_the_process_is_absent_for_long() -> None:
    back = NOW + 60 * MINUTE
    first = decided(cluster(back, running=2), back, restarted(decided_each_minute(1)))
    assert sizes(first) == (3, 3)
    answer = answer_of(first.record)
    assert answer is not None
    assert [removal.unneeded_seconds for removal in answer.removals] == [MINUTE]


def test_removals_determine_the_size_until_a_brake_postpones_them() -> None:
    now = NOW + 11 * MINUTE
    first, before = decided(cluster(NOW, running=2)), decided_each_minute(10)

    young, free, paused = (
        first,
        decided(cluster(now, running=2), now, before),
        decided(cluster(now, running=2), now, before, brakes=Brakes(paused=Pause(Direction.DOWN))),
    )

    assert [sizes(each) for each in (young, free, paused)] == [(3, 3), (3, 2), (3, 3)]
    assert [each.record.binding for each in (young, free, paused)] == [None, "scaleDown", "paused"]


def test_without_its_memory_the_removal_timer_restarts() -> None:
    assert sizes(decided(cluster(NOW + 10.1 * MINUTE, running=2), NOW + 10.1 * MINUTE)) == (3, 3)


def test_a_newly_unneeded_node_is_worth_a_write_and_an_unchanged_one_is_not() -> None:
    first = decided(cluster(NOW, running=2)).memory
    second = decided(cluster(NOW + MINUTE, running=2), NOW + MINUTE, first).memory

    assert changed_enough_to_write(Memory(), first)
    assert not changed_enough_to_write(first, second)


def test_a_memory_from_the_future_removes_no_node_early() -> None:
    memory = Memory(own=ClusterSizeMemory(unneeded_since={"n2": NOW + 7200}))

    found = decided(cluster(NOW, running=2), NOW, memory)

    assert size_memory(found).unneeded_since["n2"] <= NOW


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (ClusterState(nodes=Unknown("no rights")), "nodes are not known: no rights"),
        (replace(cluster(NOW), pods=Unknown("no rights")), "pods are not known: no rights"),
        (replace(cluster(NOW), nodes=Observed((), NOW - 100)), "the facts of the cluster are 130 s old"),
        (replace(cluster(NOW + 30), objects={MACHINES: AWAITED}), "machines: the first list has not arrived yet"),
        (replace(cluster(NOW + 30), disruption_budgets=AWAITED), "machines: the first list has not arrived yet"),
        (
            replace(cluster(NOW + 30), storage=Storage(Observed({}, NOW), AWAITED, Observed({}, NOW), AWAITED)),
            "machines: the first list has not arrived yet",
        ),
    ],
)
def test_without_facts_the_last_sizes_are_held_and_no_node_is_removed(state: ClusterState, reason: str) -> None:
    before = decided(cluster(NOW, pending=2))
    now = NOW + 30
    for last in (answer_of(before.record), None):
        held = decided(state, now, before.memory, last=last)

        assert held.record.status is Status.HELD
        assert reason in held.record.message
        assert sizes(held) == (5, 5)
        assert held.record.time == NOW
        assert held.memory == before.memory


def test_sizes_held_for_too_long_are_stale() -> None:
    before = decided(cluster(NOW, pending=2))

    found = decided(ClusterState(nodes=Unknown("no rights")), NOW + 61, before.memory)

    assert (found.record.status, found.record.details) == (Status.STALE, None)


def test_a_pause_holds_sizes_and_is_reported() -> None:
    found = decided(cluster(NOW, pending=2), brakes=Brakes(paused=Pause(Direction.BOTH)))

    assert (found.record.status, sizes(found)) == (Status.HELD, (3, 3))
    assert "paused by the configuration" in found.record.message


def test_unknown_and_left_out_objects_are_reported_and_keep_nodes() -> None:
    state = replace(
        cluster(NOW, running=2),
        disruption_budgets=Unknown("no rights"),
        left_out=tuple(LeftOut("Pod", "shop", f"x{number}", f"pod shop/x{number}: bad") for number in range(5)),
    )

    answer = answer_of(decided(state).record)

    assert answer is not None
    assert "PodDisruptionBudgets are not known, so no pod is moved: no rights" in answer.notes
    assert "5 Pods left out: pod shop/x0: bad; pod shop/x1: bad; pod shop/x2: bad; and 2 more" in answer.notes


def test_an_object_that_is_left_out_is_reported_once() -> None:
    bad = "Pod shop/x: bad"
    problem = f"pods that cannot be used are left out (1); the first: {bad}"
    state = replace(cluster(NOW), problems=(problem, "other"), left_out=(LeftOut("Pod", "shop", "x", bad),))

    found = decided(state).record

    answer = answer_of(found)
    assert answer is not None
    assert [note for note in answer.notes if bad in note] == [f"1 Pod left out: {bad}"]
    assert "other" in answer.notes


def test_the_message_starts_with_the_answer_and_ends_with_the_notes() -> None:
    found = decided(replace(cluster(NOW, pending=2), problems=("a note",))).record

    assert found.message == "grow a from 3 to 5; a note"
    assert message_without_notes(found, ("a note",)) == "grow a from 3 to 5"


def test_changes_of_sizes_are_remembered() -> None:
    first = decided(cluster(NOW, pending=2))
    same = decided(cluster(NOW + 10, pending=2), NOW + 10, first.memory)
    other = decided(cluster(NOW + 20, pending=3), NOW + 20, same.memory)

    assert [each.memory.changes for each in (first, same, other)] == [(), (), (NOW + 20,)]


def test_times_in_the_future_in_the_memory_do_not_extend_delays() -> None:
    year = NOW + 365 * 24 * 60 * MINUTE
    wrong = ClusterSizeMemory(
        back_offs={"a": BackOff(year, 3e7, year, "no quota")},
        requested={"a": RequestedNodes(9, year)},
        last_scale_up=year,
        last_delete=year,
        last_failure=year,
    )
    first = decided(cluster(NOW, pending=2), memory=Memory(own=wrong))
    kept = size_memory(first)

    assert {kept.last_scale_up, kept.last_delete, kept.last_failure} == {NOW}
    assert {each.since for each in kept.requested.values()} == {NOW}
    assert [(each.failed_at, each.until <= NOW + 30 * MINUTE) for each in kept.back_offs.values()] == [(NOW, True)]
    assert sizes(decided(cluster(NOW + 31 * MINUTE, pending=2), NOW + 31 * MINUTE, first.memory)) == (5, 5)


def test_old_facts_of_storage_and_of_cluster_api_are_unknown() -> None:
    state, old = cluster(NOW), NOW - 10 * MINUTE
    assert state.storage is not None
    kind = ObjectKind("cluster.x-k8s.io", "machines", "Machine")
    aged = replace(state, storage=replace(state.storage, volumes=Observed({}, old)), objects={kind: Observed((), old)})

    known = known_cluster(aged, 120.0, NOW).cluster

    assert known.storage is not None
    assert isinstance(known.storage.claims, Observed)
    assert known.storage.volumes == Unknown("what is known is 600 s old, and 120 s are allowed")
    assert known.objects == {kind: Unknown("what is known is 600 s old, and 120 s are allowed")}


POOLS = ObjectKind("cluster.x-k8s.io", "machinedeployments", "MachineDeployment", "fleet")


def without(state: ClusterState, what: str) -> ClusterState:
    """Return the state after a first list without objects."""
    if what == "objects":
        return replace(state, objects={kind: Observed((), NOW, began_empty=True) for kind in state.objects})
    return replace(state, **{what: Observed((), NOW, began_empty=True)})  # type: ignore[arg-type]  # fields by name


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("nodes", "nodes are not known: the first list since the start was empty, and 3 nodes were known before"),
        ("pods", "pods are not known: the first list since the start was empty, and 4 pods were known before"),
        ("disruption_budgets", "the first list since the start was empty, and 1 PodDisruptionBudgets were known"),
        ("objects", "and 1 machinedeployments.cluster.x-k8s.io of fleet were known before"),
    ],
)
def test_an_empty_first_list_after_a_restart_changes_no_size(what: str, expected: str) -> None:
    budget = DisruptionBudget("shop", "web", None, 0)
    full = replace(
        cluster(NOW, running=3, pending=1),
        disruption_budgets=Observed((budget,), NOW),
        objects={POOLS: Observed(({"metadata": {"name": "a"}},), NOW)},
    )
    memory = restarted(decided(full).memory)
    found = decided(without(full, what), memory=memory)
    assert found.record.status is Status.HELD
    assert expected in found.record.message
    assert sizes(found) == (4, 4)
    assert found.memory.known == memory.known


def test_without_memory_an_empty_first_list_of_nodes_is_believed() -> None:
    found = decided(without(cluster(NOW, running=0), "nodes"))
    assert found.record.status is Status.OK
    assert "nodes" not in found.memory.known
