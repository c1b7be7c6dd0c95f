"""Machines that cannot be created, or that never become nodes, are deleted, unless they are in doubt."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from recommender.cluster_size.node_groups.protocol import OutcomeUnknownError
from recommender.decisions.policy_settings import Brakes, Direction, MaxStep, Pause
from recommender.kinds.cluster_size.model.memory import AskedSize, RequestedNodes, restore_memory
from recommender.outputs.scale_results import ScaleResult
from tests.recommender.kinds.cluster_size.builders import node
from tests.recommender.kinds.cluster_size.deciding import writes_of
from tests.recommender.kinds.cluster_size.machine_harness import (
    PROVISION,
    START,
    STEP,
    PluginMachines,
    group_of,
    harness_of,
    with_error,
    with_lost,
)


def test_a_machine_that_cannot_be_created_is_deleted_once() -> None:
    group = with_error(stays=True)
    harness = harness_of(group)
    harness.run(600.0)
    [deletion] = group.deletions
    assert (deletion.machines, deletion.left) == (("x:///new",), 2)
    assert deletion.at - START <= 75.0 + STEP, "as soon as no request of an earlier process can take effect"
    [sent] = deletion.nodes
    assert (sent.name, dict(sent.annotations)) == (
        "x:///new",
        {"k8s.io/cluster-autoscaler/fake-node-reason": "create-error"},
    )


def test_a_machine_that_never_becomes_a_node_is_deleted_after_the_provision_time() -> None:
    group = with_lost()
    harness = harness_of(group)
    harness.run(1500.0)
    [deletion] = group.deletions
    assert (deletion.machines, deletion.left) == (("x:///lost",), 2)
    assert PROVISION < deletion.at - START <= PROVISION + STEP
    assert dict(deletion.nodes[0].annotations) == {"k8s.io/cluster-autoscaler/fake-node-reason": "unregistered"}


def test_a_machine_that_joins_in_time_is_kept() -> None:
    group = with_lost()
    harness = harness_of(group)
    harness.run(870.0)
    harness.nodes.append(node("late", provider_id="x:///lost", created=harness.now))
    harness.run(1500.0)
    assert (group.deletions, harness.failed) == ([], ())


def test_a_machine_that_joins_after_the_decision_is_kept() -> None:
    group = with_lost()
    harness = harness_of(group)

    def join() -> None:
        if any(one.is_due for one in harness.failed) and len(harness.nodes) == 2:
            harness.nodes.append(node("late", provider_id="x:///lost", created=harness.now))

    harness.before_send = join
    harness.run(1500.0)
    assert (len(harness.nodes), group.deletions) == (3, [])
    assert ScaleResult.REFUSED in harness.results


def test_a_restart_restarts_the_provision_time() -> None:
    group = with_lost()
    harness = harness_of(group)
    harness.run(600.0)
    harness.restart()
    restarted = harness.now
    harness.run(1500.0)
    [deletion] = group.deletions
    assert PROVISION < deletion.at - restarted <= PROVISION + STEP


@pytest.mark.parametrize(("stated", "seconds"), [(300.0, 300.0), (0.0, PROVISION)])
def test_a_group_may_have_its_own_provision_time(stated: float, seconds: float) -> None:
    group = with_lost(provision_seconds=stated)
    harness_of(group).run(1500.0)
    [deletion] = group.deletions
    assert seconds < deletion.at - START <= seconds + STEP


def test_time_without_decisions_does_not_count() -> None:
    group = with_lost()
    harness = harness_of(group)
    harness.run(300.0)
    harness.now += 7200.0
    again = harness.now
    harness.run(1500.0)
    [deletion] = group.deletions
    assert deletion.at - again > PROVISION - 300.0


def test_a_size_request_under_way_is_kept_when_a_machine_fails() -> None:
    group = with_error()
    harness = harness_of(group)
    harness.run(90.0)
    own = restore_memory(harness.memory.own)
    asked = {"a": AskedSize(5, 3, harness.now)}
    harness.memory = replace(harness.memory, own=structs.replace(own, asked=asked))
    assert restore_memory(harness.decide().memory.own).asked == asked
    assert "a change of the size of its group is under way" in harness.notes


def test_failed_machines_wait_for_a_size_that_the_provider_does_not_show_yet() -> None:
    group = with_error()
    harness = harness_of(group)
    harness.step()
    own = structs.replace(restore_memory(harness.memory.own), requested={"a": RequestedNodes(4, START)})
    harness.memory = replace(harness.memory, own=own)
    harness.run(600.0)
    assert group.deletions == []
    assert "its provider has accepted a size of 4 and still shows 3" in harness.notes
    assert ScaleResult.REFUSED not in harness.results, "nothing is requested at an unknown size"


def test_the_provision_time_restarts_for_a_machine_that_was_absent() -> None:
    group = with_lost()
    harness = harness_of(group)
    harness.run(600.0)
    group.machines.remove("x:///lost")
    harness.run(STEP)
    group.machines.append("x:///lost")
    back = harness.now
    harness.run(1500.0)
    [deletion] = group.deletions
    assert deletion.at - back > PROVISION


def test_a_process_that_writes_no_sizes_states_who_deletes_machines() -> None:
    group = with_error()
    harness = harness_of(group)
    harness.decide(writes=False)
    assert [one.is_due for one in harness.failed] == [False]
    assert "this process writes no sizes: let `run` delete it, with the output scale" in harness.notes


def test_a_group_with_a_failed_machine_shrinks_before_it_grows() -> None:
    group = with_lost()
    harness = harness_of(group)
    harness.run(930.0)
    [write] = writes_of(harness.decide(pending=3)).groups.writes
    assert (write.replicas, [one.provider_id for one in write.machines]) == (2, ["x:///lost"])


def test_at_most_max_parallelism_machines_are_deleted_at_a_time() -> None:
    names = [f"x:///new-{number}" for number in range(12)]
    group = group_of("x:///1", *names, errors=dict.fromkeys(names, "OutOfResources"))
    group.stays = True
    harness = harness_of(group)
    harness.down = replace(harness.down, max_parallelism=4)
    harness.run(600.0)
    assert [len(one.machines) for one in group.deletions] == [4]
    assert "at most 4 nodes are removed at a time" in harness.notes


def test_of_several_failed_machines_a_group_loses_only_those_above_its_minimum() -> None:
    names = [f"x:///new-{number}" for number in range(4)]
    group = group_of("x:///1", *names, minimum=3, errors=dict.fromkeys(names, "OutOfResources"))
    harness = harness_of(group)
    harness.run(300.0)
    assert [len(one.machines) for one in group.deletions] == [2]
    assert "its group has a minimum of 3" in harness.notes


def test_a_machine_that_cannot_be_created_is_deleted_before_one_that_may_still_join() -> None:
    group = with_lost(minimum=3)
    harness = harness_of(group)
    harness.run(PROVISION + STEP)
    assert group.deletions == []
    group.machines.append("x:///new")
    group.errors["x:///new"] = "OutOfResources"
    group.target += 1
    harness.run(300.0)
    assert [one.machines for one in group.deletions] == [("x:///new",)]


@pytest.mark.parametrize(
    ("brakes", "deleted"),
    [
        pytest.param(Brakes(max_step=MaxStep(replicas=1)), [1, 1, 1], id="maxStep"),
        pytest.param(Brakes(max_changes_per_hour=1), [3], id="maxChangesPerHour"),
        pytest.param(Brakes(paused=Pause(Direction.UP)), [3], id="only-growth-is-paused"),
    ],
)
def test_brakes_count_failed_machines_like_nodes(brakes: Brakes, deleted: list[int]) -> None:
    names = [f"x:///new-{number}" for number in range(3)]
    group = group_of("x:///1", *names, errors=dict.fromkeys(names, "OutOfResources"))
    harness = harness_of(group)
    harness.policy = replace(harness.policy, brakes=brakes)
    harness.run(300.0)
    assert [len(one.machines) for one in group.deletions] == deleted
    group.machines.append("x:///new-9")
    group.errors["x:///new-9"] = "OutOfResources"
    group.target += 1
    harness.run(120.0)
    is_stopped = brakes.max_changes_per_hour is not None
    assert [len(one.machines) for one in group.deletions] == [*deleted, *([] if is_stopped else [1])]


def test_a_refused_deletion_is_retried_later_and_delays_nothing_else() -> None:
    group = with_error()

    def refuse() -> None:
        raise ValueError("the machine is locked")

    group.on_delete = refuse
    harness = harness_of(group)
    harness.run(900.0)
    assert len(group.deletions) == 1
    harness.run(900.0)
    assert [one.at - group.deletions[0].at > 890.0 for one in group.deletions[1:]] == [True]
    assert restore_memory(harness.memory.own).last_failure is None


@pytest.mark.parametrize("takes_effect", [True, False])
def test_a_deletion_with_an_unknown_outcome_is_not_repeated_soon(*, takes_effect: bool) -> None:
    group = with_error(stays=True)

    def no_answer() -> None:
        group.target -= takes_effect
        raise OutcomeUnknownError("NodeGroupDeleteNodes: DEADLINE_EXCEEDED")

    group.on_delete = no_answer
    harness = harness_of(group)
    harness.run(900.0)
    assert len(group.deletions) == 1
    assert group.target == 3 - takes_effect


def test_a_new_process_does_not_repeat_the_deletion_of_a_killed_one() -> None:
    group = with_error(stays=True)
    harness = harness_of(group)
    harness.run(90.0)
    stored = harness.decide()
    assert [one.is_due for one in harness.failed] == [True]
    group.target -= 1
    harness.memory = stored.memory
    harness.now += STEP
    harness.restart()
    harness.run(600.0)
    assert (group.deletions, group.target) == ([], 2), "the killed process has sent its request, as the size shows"


_ODD = st.sampled_from(("exact", "exact", "exact", "exact", "upper", "end", "missing", "foreign", "zone"))


@st.composite
def _clouds(draw: st.DrawFn) -> tuple[list[tuple[str, str, bool]], int, int, int, bool]:
    """Return machines with the spelling of their nodes and whether they cannot be created, and the rest of a cloud."""
    spellings = st.sampled_from(("exact", "exact", "lost", draw(_ODD)))
    stated = draw(st.lists(st.tuples(spellings, st.booleans()), min_size=1, max_size=6))
    machines = [(f"x:///m{number}", how, fails and how == "lost") for number, (how, fails) in enumerate(stated)]
    size = max(0, len(machines) + draw(st.sampled_from((-1, 0, 0, 0, 1))))
    minimum = draw(st.sampled_from((0, 0, len(machines) - 1, len(machines))))
    return machines, size, minimum, draw(st.sampled_from((0, 300, 600))), draw(st.booleans())


def _spelled(machine: str, how: str) -> str:
    end = machine.rpartition("/")[2]
    return {
        "upper": machine.upper(),
        "end": end,
        "missing": "",
        "foreign": f"k3s://node-{end}",
        "zone": f"x://z/{end}",
    }.get(how, machine)


@given(cloud=_clouds())
@settings(max_examples=60, derandomize=True, deadline=None)
def test_no_node_no_young_machine_and_nothing_below_the_minimum_is_deleted(
    cloud: tuple[list[tuple[str, str, bool]], int, int, int, bool],
) -> None:
    machines, size, minimum, listed_after, twice = cloud
    errors = {name: "OutOfResources" for name, _, errs in machines if errs}
    group = PluginMachines("a", [], errors, size, minimum)
    other = group_of("x:///other", name="b")
    harness = harness_of(group, other)
    harness.nodes = [node("other", provider_id="x:///other", created=1.0)]
    listed: dict[str, float] = {}
    for number, (name, how, _) in enumerate(machines):
        if number % 2:
            harness.run(listed_after / 2)
        group.machines.append(name)
        listed[name] = harness.now
        if how != "lost":
            harness.nodes.append(node(f"node-{number}", provider_id=_spelled(name, how), created=1.0))
    seen, restarted = listed, START
    if twice:
        harness.run(120.0)
        harness.restart()
        restarted = harness.now
        seen = {name: max(at, harness.now) for name, at in listed.items()}
    harness.run(1800.0)
    lost = {name for name, how, _ in machines if how == "lost"}
    for deletion in group.deletions:
        nodes = sum(at <= deletion.at for name, at in listed.items() if name not in lost)
        assert set(deletion.machines) <= lost, "never a node, however it is spelled"
        assert deletion.left >= max(minimum, nodes), "never below the minimum, or the nodes"
        assert all(
            name in errors or deletion.at - (seen if deletion.at >= restarted else listed)[name] > PROVISION
            for name in deletion.machines
        )
    assert other.deletions == []
