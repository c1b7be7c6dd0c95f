"""Machines that cannot be created, or that never become nodes, are deleted; whatever is in doubt is not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from recommender.cluster_size.node_groups.protocol import OutcomeUnknownError
from recommender.decisions.policy_settings import Brakes, Direction, MaxStep, Pause
from recommender.kinds.cluster_size.model.memory import AskedSize, RequestedNodes, remembered
from recommender.kinds.cluster_size.model.size_settings import PluginGroups
from recommender.outputs.scale_results import ScaleResult
from tests.recommender.kinds.cluster_size.builders import node
from tests.recommender.kinds.cluster_size.deciding import writes_of
from tests.recommender.kinds.cluster_size.machine_world import (
    PROVISION,
    START,
    STEP,
    MachineWorld,
    PluginMachines,
    group_of,
    world_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

SHORT = {"x:///new": "OutOfResources: no more of these in zone-a"}


def with_error(**more: object) -> PluginMachines:
    found = group_of("x:///1", "x:///2", "x:///new", errors=SHORT)
    for name, value in more.items():
        setattr(found, name, value)
    return found


def with_lost(**more: object) -> PluginMachines:
    found = group_of("x:///1", "x:///2", "x:///lost")
    for name, value in more.items():
        setattr(found, name, value)
    return found


def test_a_machine_that_cannot_be_created_is_deleted_once() -> None:
    group = with_error(stays=True)
    world = world_of(group)
    world.run(600.0)
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
    world = world_of(group)
    world.run(1500.0)
    [deletion] = group.deletions
    assert (deletion.machines, deletion.left) == (("x:///lost",), 2)
    assert PROVISION < deletion.at - START <= PROVISION + STEP
    assert dict(deletion.nodes[0].annotations) == {"k8s.io/cluster-autoscaler/fake-node-reason": "unregistered"}


def test_a_machine_that_joins_in_time_stays() -> None:
    group = with_lost()
    world = world_of(group)
    world.run(870.0)
    world.nodes.append(node("late", provider_id="x:///lost", created=world.now))
    world.run(1500.0)
    assert (group.deletions, world.failed) == ([], ())


def test_a_machine_that_joins_after_the_decision_stays() -> None:
    group = with_lost()
    world = world_of(group)

    def join() -> None:
        if any(one.is_due for one in world.failed) and len(world.nodes) == 2:
            world.nodes.append(node("late", provider_id="x:///lost", created=world.now))

    world.before_send = join
    world.run(1500.0)
    assert (len(world.nodes), group.deletions) == (3, [])
    assert ScaleResult.REFUSED in world.results


def test_a_restart_begins_the_time_anew() -> None:
    group = with_lost()
    world = world_of(group)
    world.run(600.0)
    world.restart()
    restarted = world.now
    world.run(1500.0)
    [deletion] = group.deletions
    assert PROVISION < deletion.at - restarted <= PROVISION + STEP


@pytest.mark.parametrize(("stated", "seconds"), [(300.0, 300.0), (0.0, PROVISION)])
def test_a_group_may_state_a_provision_time_of_its_own(stated: float, seconds: float) -> None:
    group = with_lost(provision_seconds=stated)
    world_of(group).run(1500.0)
    [deletion] = group.deletions
    assert seconds < deletion.at - START <= seconds + STEP


def test_time_without_decisions_does_not_count() -> None:
    group = with_lost()
    world = world_of(group)
    world.run(300.0)
    world.now += 7200.0
    again = world.now
    world.run(1500.0)
    [deletion] = group.deletions
    assert deletion.at - again > PROVISION - 300.0


def test_a_size_that_is_being_asked_for_is_not_forgotten_for_a_failed_machine() -> None:
    group = with_error()
    world = world_of(group)
    world.run(90.0)
    own = remembered(world.memory.own)
    asked = {"a": AskedSize(5, 3, world.now)}
    world.memory = replace(world.memory, own=structs.replace(own, asked=asked))
    assert remembered(world.decide().memory.own).asked == asked
    assert "a change of the size of its group is under way" in world.notes


def test_a_size_that_the_provider_does_not_show_lets_failed_machines_wait() -> None:
    group = with_error()
    world = world_of(group)
    world.step()
    own = structs.replace(remembered(world.memory.own), requested={"a": RequestedNodes(4, START)})
    world.memory = replace(world.memory, own=own)
    world.run(600.0)
    assert group.deletions == []
    assert "its provider has accepted a size of 4 and still shows 3" in world.notes
    assert ScaleResult.REFUSED not in world.results, "nothing is asked for at a size that is not known"


def test_a_machine_that_was_gone_for_a_while_begins_the_time_anew() -> None:
    group = with_lost()
    world = world_of(group)
    world.run(600.0)
    group.machines.remove("x:///lost")
    world.run(STEP)
    group.machines.append("x:///lost")
    back = world.now
    world.run(1500.0)
    [deletion] = group.deletions
    assert deletion.at - back > PROVISION


def _without_provider_id(world: MachineWorld) -> None:
    world.nodes.append(node("nameless", created=1.0))


def _of_another_form(world: MachineWorld) -> None:
    world.nodes.append(node("other", provider_id="k3s://other", created=1.0))


def _unlisted_member(world: MachineWorld) -> None:
    world.nodes.append(node("member", provider_id="x:///member", created=1.0))
    provider = world.host._loaded_provider()
    provider.owner = lambda _: "a"  # type: ignore[attr-defined]


def _no_node_matches(world: MachineWorld) -> None:
    world.nodes[:] = [replace(one, provider_id=f"x:///zone/{one.name}") for one in world.nodes]


def _no_scale_down(world: MachineWorld) -> None:
    world.down = replace(world.down, enabled=False)


def _paused(world: MachineWorld) -> None:
    world.policy = replace(world.policy, brakes=Brakes(paused=Pause(Direction.DOWN)))


def _unhealthy(world: MachineWorld) -> None:
    world.nodes += [node(f"down-{number}", provider_id=f"x:///d{number}", conditions={}) for number in range(9)]


def _outage(world: MachineWorld) -> None:
    def fail() -> None:
        raise OSError("the cloud is away")

    world.step()
    provider = world.host._loaded_provider()
    provider.on_refresh = fail  # type: ignore[attr-defined]


def _unreadable_node(world: MachineWorld) -> None:
    world.left_out = ("node n9 is left out: its cpu is not a quantity",)


def _leaving_node(world: MachineWorld) -> None:
    world.nodes[0] = replace(world.nodes[0], is_terminating=True)


HOLDS: dict[str, tuple[dict[str, object], Callable[[MachineWorld], object], str]] = {
    "node without an id": ({}, _without_provider_id, "node nameless has no spec.providerID"),
    "node of another form": ({}, _of_another_form, "k3s://other, has another form"),
    "member that is not listed": ({}, _unlisted_member, "node member of the group is not in the list"),
    "no id is that of a node": ({}, _no_node_matches, "ids cannot be compared"),
    "an earlier list": ({"late_seconds": 5.0}, lambda _: None, "the list of machines is an earlier one"),
    "an answer from before an outage": ({}, _outage, "an earlier one: OSError: the cloud is away"),
    "a node that cannot be read": ({}, _unreadable_node, "not all nodes are known: node n9 is left out"),
    "a node that is being deleted": ({}, _leaving_node, "node node-0 of its group is being deleted"),
    "the minimum": ({"minimum": 3}, lambda _: None, "a minimum of 3"),
    "a size that counts the nodes alone": ({"target": 2}, lambda _: None, "2 nodes, and a size of 2"),
    "all or nothing": ({"zero_or_max": True}, lambda _: None, "is not split"),
    "no scale-down": ({}, _no_scale_down, "scaleDown.enabled is false"),
    "a pause": ({}, _paused, "paused"),
    "an unhealthy cluster": ({}, _unhealthy, "nodes are not ready"),
}


@pytest.mark.parametrize("make", [with_error, with_lost])
@pytest.mark.parametrize(("more", "change", "reason"), HOLDS.values(), ids=HOLDS)
def test_what_is_in_doubt_or_forbidden_is_not_deleted_and_is_named(
    make: Callable[..., PluginMachines],
    more: dict[str, object],
    change: Callable[[MachineWorld], object],
    reason: str,
) -> None:
    group = make(**more)
    world = world_of(group)
    change(world)
    world.run(1500.0)
    assert group.deletions == []
    assert reason in world.notes


@pytest.mark.parametrize("provider_id", ["", "aci://virtual"], ids=["no id", "an id of another form"])
@pytest.mark.parametrize("make", [with_error, with_lost])
def test_a_node_of_virtual_kubelet_is_no_machine_and_raises_no_doubt(
    make: Callable[..., PluginMachines], provider_id: str
) -> None:
    group = make()
    world = world_of(group)
    world.nodes.append(node("virtual", provider_id=provider_id, labels={"type": "virtual-kubelet"}, created=1.0))
    world.run(1500.0)
    assert len(group.deletions) == 1


def test_machines_whose_ids_change_with_each_call_are_never_old_enough() -> None:
    group = with_lost(number=0)
    world = world_of(group)
    world.run(3000.0)
    assert (group.deletions, world.failed) == ([], ())


def test_if_many_machines_do_not_join_the_cluster_may_be_at_fault() -> None:
    few, many = (group_of("x:///1", *(f"x:///lost-{each}" for each in range(count))) for count in (3, 4))
    for group in (few, many):
        world = world_of(group)
        world.run(1500.0)
    assert (sum(len(one.machines) for one in few.deletions), many.deletions) == (3, [])
    assert "4 of 5 machines are no nodes, which is more than maxUnready allows" in world.notes


def test_ways_to_fail_are_named_up_to_a_bound() -> None:
    names = [f"x:///new-{number}" for number in range(50)]
    world = world_of(group_of("x:///1", *names, errors={each: f"no disk for {each}" for each in names}))
    world.decide()
    assert world.notes.count("it cannot be created") == 20
    assert "machines have failed in 30 more ways" in world.notes


def test_a_machine_that_is_listed_in_two_groups_is_not_deleted() -> None:
    groups = with_lost(), group_of("x:///9", "x:///lost", name="b")
    world = world_of(*groups)
    world.run(1500.0)
    assert [group.deletions for group in groups] == [[], []]
    assert "the provider lists a machine in two groups" in world.notes


def test_a_group_without_nodes_loses_machines_only_if_they_cannot_be_created() -> None:
    lost, short = group_of("x:///lost", name="b"), group_of("x:///new", name="c", errors=SHORT)
    world = world_of(group_of("x:///1"), lost, short)
    world.run(1500.0)
    assert (lost.deletions, [one.machines for one in short.deletions]) == ([], [("x:///new",)])
    assert "no machine of its group is a node" in world.notes


@pytest.mark.parametrize("spelling", ["X:///LOST", "lost", "/lost", "x://zone/lost"])
def test_a_node_that_is_spelled_differently_is_not_deleted(spelling: str) -> None:
    group = with_lost()
    world = world_of(group)
    world.nodes.append(node("third", provider_id=spelling, created=1.0))
    world.run(1500.0)
    assert (group.deletions, world.failed) == ([], ())


def test_a_node_whose_name_is_the_id_of_a_machine_is_not_deleted() -> None:
    group = with_lost()
    world = world_of(group)
    world.nodes.append(node("lost", provider_id="x:///other", created=1.0))
    world.run(1500.0)
    assert (group.deletions, world.failed) == ([], ())


@pytest.mark.parametrize(
    ("stated", "needed"),
    [
        (PluginGroups("cloud", writes=True), "write `deleteNodes: true`, or delete it at the provider"),
        (PluginGroups("cloud"), "write `writes: true and deleteNodes: true`"),
    ],
)
def test_without_delete_nodes_the_answer_says_what_to_do(stated: PluginGroups, needed: str) -> None:
    group = with_error()
    world = world_of(group, settings=stated)
    for _ in range(5):
        world.decide()
    assert group.deletions == []
    assert f"node group a: x:///new: it cannot be created: {SHORT['x:///new']}; not deleted: {needed}" in world.notes


def test_the_size_does_not_fall_below_the_nodes_of_a_group_that_the_provider_does_not_assign() -> None:
    group = with_lost(target=2)
    world = world_of(group, group_of("x:///9", name="b"))
    provider = world.host._loaded_provider()
    provider.owner = lambda one: "b" if one.provider_id == "x:///9" else None  # type: ignore[attr-defined]
    group.errors["x:///lost"] = "OutOfResources"
    world.run(1500.0)
    assert group.deletions == []


def test_a_process_that_writes_nothing_says_who_deletes() -> None:
    group = with_error()
    world = world_of(group)
    world.decide(writes=False)
    assert [one.is_due for one in world.failed] == [False]
    assert "this process writes no sizes: let `run` delete it, with the output scale" in world.notes


def test_a_group_whose_machine_has_failed_does_not_grow_so_that_the_size_falls() -> None:
    group = with_lost()
    world = world_of(group)
    world.run(930.0)
    [wish] = writes_of(world.decide(pending=3)).groups.wishes
    assert (wish.replicas, [one.provider_id for one in wish.machines]) == (2, ["x:///lost"])


def test_no_more_machines_than_max_parallelism_are_deleted_at_a_time() -> None:
    names = [f"x:///new-{number}" for number in range(12)]
    group = group_of("x:///1", *names, errors=dict.fromkeys(names, "OutOfResources"))
    group.stays = True
    world = world_of(group)
    world.down = replace(world.down, max_parallelism=4)
    world.run(600.0)
    assert [len(one.machines) for one in group.deletions] == [4]
    assert "at most 4 nodes are removed at a time" in world.notes


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
    world = world_of(group)
    world.policy = replace(world.policy, brakes=brakes)
    world.run(300.0)
    assert [len(one.machines) for one in group.deletions] == deleted
    group.machines.append("x:///new-9")
    group.errors["x:///new-9"] = "OutOfResources"
    group.target += 1
    world.run(120.0)
    is_stopped = brakes.max_changes_per_hour is not None
    assert [len(one.machines) for one in group.deletions] == [*deleted, *([] if is_stopped else [1])]


def test_a_refused_deletion_is_asked_for_again_after_a_while_and_holds_nothing_else() -> None:
    group = with_error()

    def refuse() -> None:
        raise ValueError("the machine is locked")

    group.on_delete = refuse
    world = world_of(group)
    world.run(900.0)
    assert len(group.deletions) == 1
    world.run(900.0)
    assert [one.at - group.deletions[0].at > 890.0 for one in group.deletions[1:]] == [True]
    assert remembered(world.memory.own).last_failure is None


@pytest.mark.parametrize("takes_effect", [True, False])
def test_a_deletion_without_an_answer_is_not_repeated_soon(*, takes_effect: bool) -> None:
    group = with_error(stays=True)

    def no_answer() -> None:
        group.target -= takes_effect
        raise OutcomeUnknownError("NodeGroupDeleteNodes: DEADLINE_EXCEEDED")

    group.on_delete = no_answer
    world = world_of(group)
    world.run(900.0)
    assert len(group.deletions) == 1
    assert group.target == 3 - takes_effect


def test_a_process_that_follows_a_killed_one_does_not_repeat_its_deletion() -> None:
    group = with_error(stays=True)
    world = world_of(group)
    world.run(90.0)
    stored = world.decide()
    assert [one.is_due for one in world.failed] == [True]
    group.target -= 1
    world.memory = stored.memory
    world.now += STEP
    world.restart()
    world.run(600.0)
    assert (group.deletions, group.target) == ([], 2), "the killed process has asked, as the size shows"


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
def test_never_a_node_never_below_the_minimum_and_never_too_young(
    cloud: tuple[list[tuple[str, str, bool]], int, int, int, bool],
) -> None:
    machines, size, minimum, listed_after, twice = cloud
    errors = {name: "OutOfResources" for name, _, errs in machines if errs}
    group = PluginMachines("a", [], errors, size, minimum)
    other = group_of("x:///other", name="b")
    world = world_of(group, other)
    world.nodes = [node("other", provider_id="x:///other", created=1.0)]
    listed: dict[str, float] = {}
    for number, (name, how, _) in enumerate(machines):
        if number % 2:
            world.run(listed_after / 2)
        group.machines.append(name)
        listed[name] = world.now
        if how != "lost":
            world.nodes.append(node(f"node-{number}", provider_id=_spelled(name, how), created=1.0))
    seen, restarted = listed, START
    if twice:
        world.run(120.0)
        world.restart()
        restarted = world.now
        seen = {name: max(at, world.now) for name, at in listed.items()}
    world.run(1800.0)
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
