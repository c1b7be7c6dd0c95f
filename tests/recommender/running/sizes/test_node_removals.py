"""Nodes are drained, and deleted through their provider."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from adapter.foundation.sources.kubernetes.errors import ForbiddenError
from recommender.cluster_size.node_groups.protocol import InstanceState, OutcomeUnknownError, ProviderInstance
from recommender.kinds.cluster_size.health.failed_removals import FAILED_REMOVAL
from recommender.kinds.cluster_size.model.size_settings import ScaleDownSettings
from recommender.outputs.scale_results import ScaleResult
from recommender.running.sizes.removal_marks import REMOVAL
from tests.recommender.running.sizes.provider_world import ProviderWorld

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


SCRATCH: Final = {"name": "scratch", "emptyDir": {}}


def test_a_node_is_cordoned_drained_and_then_deleted() -> None:
    world = ProviderWorld()
    world.api.add_pod("web", "n2")
    world.api.add_pod("agent", "n2", owner="DaemonSet")
    world.api.add_pod("mirror", "n2", owner="Node", annotations={"kubernetes.io/config.mirror": "x"})
    world.api.add_pod("elsewhere", "n1")
    assert world.resize(1, "n2").result is ScaleResult.OK
    assert (world.is_cordoned("n2"), world.group.changes) == (True, [])
    world.later(4)
    assert (world.api.evicted, world.group.changes) == (["web"], []), "pods on their way to the node are waited for"
    world.later(3)
    assert world.group.changes == [("delete", ["n2"])]
    assert [event.reason for event in world.events] == ["NodeRemoved"]
    world.later(60)
    assert world.group.changes == [("delete", ["n2"])]
    assert world.is_usable("n1")


DELAY: Final = "delay-deletion.cluster-autoscaler.kubernetes.io/storage"


def test_a_drained_node_waits_for_programs_that_delay_its_deletion() -> None:
    world = ProviderWorld()
    world.api.add_pod("web", "n2")
    world.api.nodes["n2"]["metadata"]["annotations"][DELAY] = "yes"
    world.resize(1, "n2")
    world.later(100)
    assert (world.is_cordoned("n2"), world.api.evicted, world.group.changes) == (True, ["web"], [])
    del world.api.nodes["n2"]["metadata"]["annotations"][DELAY]
    world.later(2)
    assert world.group.changes == [("delete", ["n2"])]


def test_an_annotation_delays_a_deletion_for_two_minutes_after_the_last_pod() -> None:
    world = ProviderWorld()
    world.api.lingers = True
    world.api.add_pod("web", "n2")
    world.api.nodes["n2"]["metadata"]["annotations"][DELAY] = "yes"
    world.resize(1, "n2")
    world.later(60)
    world.api.pods.clear()
    world.later(115)
    assert world.group.changes == []
    world.later(10)
    assert world.group.changes == [("delete", ["n2"])]


def test_no_node_of_a_group_that_goes_as_a_whole_is_deleted_before_all_are_drained() -> None:
    world = ProviderWorld()
    world.api.lingers = True
    world.api.add_pod("web", "n1")
    assert world.resize(0, "n1", "n2", whole=2).result is ScaleResult.OK
    world.later(300)
    assert (world.is_cordoned("n2"), world.group.changes) == (True, [])
    world.api.pods.clear()
    world.later(3)
    assert world.group.changes == [("delete", ["n1"]), ("delete", ["n2"])]


def test_if_one_node_of_a_group_that_goes_as_a_whole_stays_all_do() -> None:
    world = ProviderWorld()
    world.api.add_pod("web", "n1")
    world.api.budget = {"web"}
    world.resize(0, "n1", "n2", whole=2)
    world.later(140)
    assert (world.is_usable("n1"), world.is_usable("n2"), world.group.changes) == (True, True, [])
    assert "the group small goes as a whole" in world.events[-1].message


def test_a_group_that_goes_as_a_whole_stays_if_not_all_of_its_nodes_could_be_marked() -> None:
    world = ProviderWorld()
    world.resize(0, "n2", whole=2)
    world.later(50)
    assert (world.is_cordoned("n2"), world.group.changes) == (True, [])
    world.later(20)
    assert (world.is_usable("n2"), world.group.changes) == (True, [])


def test_another_process_continues_the_removal_of_a_group_as_a_whole() -> None:
    world = ProviderWorld()
    world.api.lingers = True
    world.api.add_pod("web", "n1")
    world.resize(0, "n1", "n2", whole=2)
    world.later(30)
    world.begin()
    world.later(10)
    assert world.group.changes == []
    world.api.pods.clear()
    world.later(5)
    assert sorted(world.group.changes) == [("delete", ["n1"]), ("delete", ["n2"])]


def test_a_group_above_its_maximum_loses_nodes() -> None:
    world = ProviderWorld()
    world.group.machines.append("x:///3")
    world.group.answers["max_size"] = 1
    assert world.resize(2, "n2").result is ScaleResult.OK
    world.later(10)
    assert world.group.changes == [("delete", ["n2"])]


def test_a_node_with_a_mark_is_not_marked_again() -> None:
    world = ProviderWorld()
    world.resize(1, "n2")
    before = world.api.nodes["n2"]["metadata"]["resourceVersion"]
    world.begin()
    assert world.resize(1, "n2").result is ScaleResult.OK
    assert world.api.nodes["n2"]["metadata"]["resourceVersion"] == before


@pytest.mark.parametrize(
    "wrong",
    [{"kind": "Status"}, {"kind": "NodeList", "items": []}, {"items": [], "metadata": {"continue": "more"}}],
    ids=["status", "another list", "a part"],
)
def test_a_node_is_not_deleted_while_its_pods_are_unknown(wrong: dict[str, Any]) -> None:
    world = ProviderWorld()
    world.api.add_pod("web", "n2")
    world.api.pod_list = wrong
    world.resize(1, "n2")
    world.later(30)
    assert (world.group.changes, world.api.evicted) == ([], [])
    world.api.pod_list = {}
    world.later(10)
    assert (world.group.changes, world.api.evicted) == ([("delete", ["n2"])], ["web"])


def test_no_pod_of_another_node_is_evicted_if_the_server_lists_all() -> None:
    world = ProviderWorld()
    world.api.add_pod("web", "n1")
    world.api.pod_list = {"items": list(world.api.pods.values())}
    world.resize(1, "n2")
    world.later(10)
    assert (world.group.changes, world.api.evicted) == ([("delete", ["n2"])], [])


def test_a_disruption_budget_is_respected_and_the_node_becomes_usable_again() -> None:
    world = ProviderWorld()
    world.api.add_pod("web", "n2")
    world.api.budget = {"web"}
    world.resize(1, "n2")
    world.later(119)
    assert world.is_cordoned("n2")
    world.later(8)
    assert world.is_usable("n2")
    assert (world.group.changes, world.api.evicted) == ([], [])
    [event] = world.events
    assert (event.reason, event.is_warning) == ("RemovalFailed", True)
    assert event.uid == world.api.nodes["n2"]["metadata"]["uid"]
    assert "the disruption budget web" in event.message
    notes = world.api.nodes["n2"]["metadata"]["annotations"]
    assert notes["own"] == "1"
    assert int(notes[FAILED_REMOVAL]) == pytest.approx(world.now, abs=10.0)


def test_a_node_is_removed_once_the_disruption_budget_allows_it() -> None:
    world = ProviderWorld()
    world.api.add_pod("web", "n2")
    world.api.budget = {"web"}
    world.resize(1, "n2")
    world.later(60)
    world.api.budget = set()
    world.later(10)
    assert world.group.changes == [("delete", ["n2"])]


def test_a_clock_set_forward_does_not_shorten_the_wait_for_pods_on_their_way_to_the_node() -> None:
    world = ProviderWorld()
    world.resize(1, "n2")
    world.later(1)
    world.wall_ahead += 30.0
    world.later(3)
    assert world.group.changes == []
    world.later(3)
    assert world.group.changes == [("delete", ["n2"])]


@pytest.mark.parametrize("seconds", [-30.0, 600.0])
def test_evictions_are_tried_for_as_long_if_the_clock_is_set(seconds: float) -> None:
    world = ProviderWorld()
    world.api.add_pod("web", "n2")
    world.api.budget = {"web"}
    world.resize(1, "n2")
    world.later(1)
    world.wall_ahead += seconds
    world.later(118)
    assert world.is_cordoned("n2")
    world.later(8)
    assert world.is_usable("n2")


@pytest.mark.parametrize("is_during_the_call", [False, True])
def test_a_node_whose_machine_is_being_deleted_takes_no_pods_after_the_clock_was_set_forward(
    *, is_during_the_call: bool
) -> None:
    world = ProviderWorld()

    def set_forward() -> None:
        world.wall_ahead += 86_400.0

    if is_during_the_call:
        world.group.on_change = set_forward
    world.resize(1, "n2")
    world.later(10)
    if not is_during_the_call:
        set_forward()
    world.later(600)
    assert world.group.changes == [("delete", ["n2"])]
    assert world.is_cordoned("n2")


def test_a_removal_is_abandoned_if_a_pod_does_not_terminate() -> None:
    world = ProviderWorld()
    world.api.lingers = True
    world.api.add_pod("web", "n2")
    world.resize(1, "n2")
    world.later(740)
    assert (world.is_cordoned("n2"), world.api.evicted) == (True, ["web"])
    world.later(20)
    assert (world.is_usable("n2"), world.group.changes) == (True, [])


def _unmovable(world: ProviderWorld) -> None:
    world.api.add_pod("alone", "n2", owner="")


def _unsafe(world: ProviderWorld) -> None:
    world.api.add_pod("web", "n2", annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"})


def _completing(world: ProviderWorld) -> None:
    world.api.add_pod("batch", "n2", annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict": "on-completion"})


def _own_kind(world: ProviderWorld) -> None:
    world.api.add_pod("db", "n2", owner="Database")


def _with_local_data(world: ProviderWorld) -> None:
    world.api.add_pod("cache", "n2")
    world.api.pods["cache"]["spec"]["volumes"] = [{"name": "ram", "emptyDir": {"medium": "Memory"}}, SCRATCH]


def _not_configured(world: ProviderWorld) -> None:
    world.stopped = "deleteNodes is not configured for plugin/example"


def _minimum(world: ProviderWorld) -> None:
    world.group.answers["min_size"] = 2


def _strange(world: ProviderWorld) -> None:
    world.group.answers["nodes"] = [ProviderInstance("x:///7")]


def _refuse_deletions(world: ProviderWorld) -> None:
    def refuse() -> None:
        raise ValueError("protected")

    world.group.on_change = refuse


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_unmovable, "shop/alone has no controller"),
        (_unsafe, "safe-to-evict: false"),
        (_completing, "shop/batch has the annotation cluster-autoscaler.kubernetes.io/safe-to-evict: on-completion"),
        (_own_kind, "shop/db is controlled by Database x"),
        (_with_local_data, "shop/cache has the emptyDir volume scratch"),
        (_not_configured, "deleteNodes is not configured"),
        (_minimum, "the group small has a minimum of 2"),
        (_strange, "the provider lists no such machine"),
        (_refuse_deletions, "ValueError: protected"),
    ],
    ids=[
        "unmanaged pod",
        "unsafe pod",
        "pod to complete",
        "pod of a custom kind",
        "pod with local data",
        "configuration",
        "minimum",
        "another group",
        "provider",
    ],
)
def test_an_obstacle_to_a_removal_makes_the_node_usable_again(
    change: Callable[[ProviderWorld], None], reason: str
) -> None:
    world = ProviderWorld()
    world.resize(1, "n2")
    change(world)
    world.later(10)
    assert world.is_usable("n2")
    assert reason in world.events[-1].message
    assert [name for name, _ in world.group.changes] == (["delete"] if change is _refuse_deletions else [])


@pytest.mark.parametrize("annotation", ["safe-to-evict", "safe-to-evict-local-volumes", ""])
def test_a_pod_that_may_move_with_its_local_data_does_not_end_a_removal(annotation: str) -> None:
    world = ProviderWorld()
    world.resize(1, "n2")
    value = "true" if annotation == "safe-to-evict" else "tmp, scratch"
    _with_local_data(world)
    world.api.pods["cache"]["metadata"]["annotations"] = {f"cluster-autoscaler.kubernetes.io/{annotation}": value}
    if not annotation:
        world.rules = ScaleDownSettings(skip_nodes_with_local_storage=False)
    world.later(10)
    assert world.api.evicted == ["cache"]
    assert [name for name, _ in world.group.changes] == ["delete"]


@pytest.mark.parametrize("after_seconds", [0, 2, 6, 20])
def test_a_removal_continues_in_the_next_process(after_seconds: int) -> None:
    world = ProviderWorld()
    world.api.add_pod("web", "n2")
    world.resize(1, "n2")
    world.later(after_seconds)
    world.begin()
    world.later(30)
    assert world.group.changes == [("delete", ["n2"])]


def test_a_deletion_is_not_requested_twice_if_the_process_ends_during_it() -> None:
    world = ProviderWorld()

    def die() -> None:
        world.permits = False
        raise OutcomeUnknownError("the process ends")

    world.group.on_change = die
    world.resize(1, "n2")
    world.later(10)
    assert world.group.changes == [("delete", ["n2"])]
    world.permits = True
    world.begin()
    world.later(300)
    assert world.group.changes == [("delete", ["n2"])]
    assert REMOVAL in world.api.nodes["n2"]["metadata"]["annotations"], "the machine is gone, and its Node will be"


def test_the_log_says_what_a_user_can_do_if_a_stopped_removal_cannot_be_undone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = ProviderWorld()
    world.resize(1, "n2")

    def refuse() -> None:
        raise ForbiddenError("PUT: 403", 403)

    world.api.before_put, world.stopped = refuse, "deleteNodes is not configured for plugin/example"
    world.later(3)
    [message] = [one for one in caplog.messages if "waits" in one]
    assert message.startswith("the removal of the node waits: PUT: 403; grant get and update on nodes")
    assert message.endswith("`kubectl taint node n2 ToBeDeletedByClusterAutoscaler-`, `kubectl uncordon n2`")


def test_a_process_that_loses_the_lease_between_two_evictions_sends_no_more() -> None:
    world = ProviderWorld()
    for number in range(3):
        world.api.add_pod(f"web-{number}", "n2")
    world.resize(1, "n2")
    evict = world.api.create

    def lose_the_lease(collection: str, document: Mapping[str, Any], *, seconds: float | None = None) -> dict[str, Any]:
        world.permits = False
        return evict(collection, document, seconds=seconds)

    world.api.create = lose_the_lease  # type: ignore[method-assign]
    world.later(300)
    assert (len(world.api.evicted), world.is_cordoned("n2"), world.events) == (1, True, [])
    world.api.create = evict  # type: ignore[method-assign]
    world.permits = True
    world.begin()
    world.later(10)
    assert (len(world.api.evicted), world.group.changes) == (3, [("delete", ["n2"])])


def test_a_node_cordoned_before_its_removal_stays_cordoned() -> None:
    world = ProviderWorld()
    world.api.add_node("n2", "x:///2", unschedulable=True)
    world.resize(1, "n2")
    world.stopped = "no more"
    world.later(3)
    assert REMOVAL not in world.api.nodes["n2"]["metadata"]["annotations"]
    assert world.api.nodes["n2"]["spec"]["unschedulable"] is True


def test_a_node_that_another_program_is_removing_keeps_its_taint() -> None:
    world = ProviderWorld()
    taint = {"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}
    world.api.nodes["n2"]["spec"]["taints"] = [taint]
    outcome = world.resize(1, "n2")
    assert outcome.result is ScaleResult.REFUSED
    assert "another program is removing it" in outcome.message
    world.later(10)
    assert (world.api.nodes["n2"]["spec"]["taints"], world.group.changes) == ([taint], [])


def test_a_node_with_the_annotation_of_cluster_autoscaler_is_not_removed() -> None:
    world = ProviderWorld()
    notes = world.api.nodes["n2"]["metadata"]["annotations"]
    notes["cluster-autoscaler.kubernetes.io/scale-down-disabled"] = "true"
    assert world.resize(1, "n2").result is ScaleResult.REFUSED
    assert world.is_usable("n2")


def test_a_removal_waits_for_a_machine_that_is_being_deleted() -> None:
    world = ProviderWorld()

    def going() -> None:
        world.group.answers["nodes"] = [
            ProviderInstance("x:///1"),
            ProviderInstance("x:///2", InstanceState.DELETING),
        ]
        raise OutcomeUnknownError("no answer")

    world.group.on_change = going
    world.resize(1, "n2")
    world.later(300)
    assert world.is_cordoned("n2")
    assert world.events[-1].reason == "NodeRemoved"
