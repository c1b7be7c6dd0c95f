"""Nodes are drained, and deleted through their provider."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from adapter.foundation.sources.kubernetes.errors import ForbiddenError
from recommender.cluster_size.node_groups.protocol import InstanceState, OutcomeUnknownError, ProviderInstance
from recommender.kinds.cluster_size.health.failed_removals import FAILED_REMOVAL
from recommender.outputs.scale_results import ScaleResult
from recommender.running.sizes.removal_marks import REMOVAL
from tests.recommender.running.sizes.provider_harness import ProviderHarness

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.foundation.sources.kubernetes.writing import Reply


SCRATCH: Final = {"name": "scratch", "emptyDir": {}}


def test_a_node_is_cordoned_drained_and_then_deleted() -> None:
    harness = ProviderHarness()
    harness.api.add_pod("web", "n2")
    harness.api.add_pod("agent", "n2", owner="DaemonSet")
    harness.api.add_pod("mirror", "n2", owner="Node", annotations={"kubernetes.io/config.mirror": "x"})
    harness.api.add_pod("elsewhere", "n1")
    assert harness.resize(1, "n2").result is ScaleResult.OK
    assert (harness.is_cordoned("n2"), harness.group.changes) == (True, [])
    harness.later(4)
    assert (harness.api.evicted, harness.group.changes) == (["web"], []), "pods on their way to the node are waited for"
    harness.later(3)
    assert harness.group.changes == [("delete", ["n2"])]
    assert [event.reason for event in harness.events] == ["NodeRemoved"]
    harness.later(60)
    assert harness.group.changes == [("delete", ["n2"])]
    assert harness.is_usable("n1")


def test_a_group_above_its_maximum_loses_nodes() -> None:
    harness = ProviderHarness()
    harness.group.machines.append("x:///3")
    harness.group.answers["max_size"] = 1
    assert harness.resize(2, "n2").result is ScaleResult.OK
    harness.later(10)
    assert harness.group.changes == [("delete", ["n2"])]


def test_a_node_with_a_mark_is_not_marked_again() -> None:
    harness = ProviderHarness()
    harness.resize(1, "n2")
    before = harness.api.nodes["n2"]["metadata"]["resourceVersion"]
    harness.begin()
    assert harness.resize(1, "n2").result is ScaleResult.OK
    assert harness.api.nodes["n2"]["metadata"]["resourceVersion"] == before


@pytest.mark.parametrize(
    "wrong",
    [{"kind": "Status"}, {"kind": "NodeList", "items": []}, {"items": [], "metadata": {"continue": "more"}}],
    ids=["status", "another list", "a part"],
)
def test_a_node_is_not_deleted_while_its_pods_are_unknown(wrong: dict[str, Any]) -> None:
    harness = ProviderHarness()
    harness.api.add_pod("web", "n2")
    harness.api.pod_list = wrong
    harness.resize(1, "n2")
    harness.later(30)
    assert (harness.group.changes, harness.api.evicted) == ([], [])
    harness.api.pod_list = {}
    harness.later(10)
    assert (harness.group.changes, harness.api.evicted) == ([("delete", ["n2"])], ["web"])


def test_no_pod_of_another_node_is_evicted_if_the_server_lists_all() -> None:
    harness = ProviderHarness()
    harness.api.add_pod("web", "n1")
    harness.api.pod_list = {"items": list(harness.api.pods.values())}
    harness.resize(1, "n2")
    harness.later(10)
    assert (harness.group.changes, harness.api.evicted) == ([("delete", ["n2"])], [])


def test_a_disruption_budget_is_respected_and_the_node_becomes_usable_again() -> None:
    harness = ProviderHarness()
    harness.api.add_pod("web", "n2")
    harness.api.budget = {"web"}
    harness.resize(1, "n2")
    harness.later(119)
    assert harness.is_cordoned("n2")
    harness.later(8)
    assert harness.is_usable("n2")
    assert (harness.group.changes, harness.api.evicted) == ([], [])
    [event] = harness.events
    assert (event.reason, event.is_warning) == ("RemovalFailed", True)
    assert event.uid == harness.api.nodes["n2"]["metadata"]["uid"]
    assert "the disruption budget web" in event.message
    notes = harness.api.nodes["n2"]["metadata"]["annotations"]
    assert notes["own"] == "1"
    assert int(notes[FAILED_REMOVAL]) == pytest.approx(harness.now, abs=10.0)


def test_a_node_is_removed_once_the_disruption_budget_allows_it() -> None:
    harness = ProviderHarness()
    harness.api.add_pod("web", "n2")
    harness.api.budget = {"web"}
    harness.resize(1, "n2")
    harness.later(60)
    harness.api.budget = set()
    harness.later(10)
    assert harness.group.changes == [("delete", ["n2"])]


def test_a_clock_set_forward_does_not_shorten_the_wait_for_pods_on_their_way_to_the_node() -> None:
    harness = ProviderHarness()
    harness.resize(1, "n2")
    harness.later(1)
    harness.wall_ahead += 30.0
    harness.later(3)
    assert harness.group.changes == []
    harness.later(3)
    assert harness.group.changes == [("delete", ["n2"])]


@pytest.mark.parametrize("seconds", [-30.0, 600.0])
def test_evictions_are_tried_for_as_long_if_the_clock_is_set(seconds: float) -> None:
    harness = ProviderHarness()
    harness.api.add_pod("web", "n2")
    harness.api.budget = {"web"}
    harness.resize(1, "n2")
    harness.later(1)
    harness.wall_ahead += seconds
    harness.later(118)
    assert harness.is_cordoned("n2")
    harness.later(8)
    assert harness.is_usable("n2")


@pytest.mark.parametrize("is_during_the_call", [False, True])
def test_a_node_whose_machine_is_being_deleted_takes_no_pods_after_the_clock_was_set_forward(
    *, is_during_the_call: bool
) -> None:
    harness = ProviderHarness()

    def set_forward() -> None:
        harness.wall_ahead += 86_400.0

    if is_during_the_call:
        harness.group.on_change = set_forward
    harness.resize(1, "n2")
    harness.later(10)
    if not is_during_the_call:
        set_forward()
    harness.later(600)
    assert harness.group.changes == [("delete", ["n2"])]
    assert harness.is_cordoned("n2")


def test_a_removal_is_abandoned_if_a_pod_does_not_terminate() -> None:
    harness = ProviderHarness()
    harness.api.lingers = True
    harness.api.add_pod("web", "n2")
    harness.resize(1, "n2")
    harness.later(740)
    assert (harness.is_cordoned("n2"), harness.api.evicted) == (True, ["web"])
    harness.later(20)
    assert (harness.is_usable("n2"), harness.group.changes) == (True, [])


def _unmovable(harness: ProviderHarness) -> None:
    harness.api.add_pod("alone", "n2", owner="")


def _unsafe(harness: ProviderHarness) -> None:
    harness.api.add_pod("web", "n2", annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"})


def _completing(harness: ProviderHarness) -> None:
    harness.api.add_pod("batch", "n2", annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict": "on-completion"})


def _own_kind(harness: ProviderHarness) -> None:
    harness.api.add_pod("db", "n2", owner="Database")


def _with_local_data(harness: ProviderHarness) -> None:
    harness.api.add_pod("cache", "n2")
    harness.api.pods["cache"]["spec"]["volumes"] = [{"name": "ram", "emptyDir": {"medium": "Memory"}}, SCRATCH]


def _not_configured(harness: ProviderHarness) -> None:
    harness.stopped = "deleteNodes is not configured for plugin/example"


def _minimum(harness: ProviderHarness) -> None:
    harness.group.answers["min_size"] = 2


def _strange(harness: ProviderHarness) -> None:
    harness.group.answers["nodes"] = [ProviderInstance("x:///7")]


def _refuse_deletions(harness: ProviderHarness) -> None:
    def refuse() -> None:
        raise ValueError("protected")

    harness.group.on_change = refuse


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
    change: Callable[[ProviderHarness], None], reason: str
) -> None:
    harness = ProviderHarness()
    harness.resize(1, "n2")
    change(harness)
    harness.later(10)
    assert harness.is_usable("n2")
    assert reason in harness.events[-1].message
    assert [name for name, _ in harness.group.changes] == (["delete"] if change is _refuse_deletions else [])


@pytest.mark.parametrize("annotation", ["safe-to-evict", "safe-to-evict-local-volumes", ""])
def test_a_pod_that_may_move_with_its_local_data_does_not_end_a_removal(annotation: str) -> None:
    harness = ProviderHarness()
    harness.resize(1, "n2")
    value = "true" if annotation == "safe-to-evict" else "tmp, scratch"
    _with_local_data(harness)
    harness.api.pods["cache"]["metadata"]["annotations"] = {f"cluster-autoscaler.kubernetes.io/{annotation}": value}
    if not annotation:
        down = replace(harness.rules.scale_down, skip_nodes_with_local_storage=False)
        harness.rules = replace(harness.rules, scale_down=down)
    harness.later(10)
    assert harness.api.evicted == ["cache"]
    assert [name for name, _ in harness.group.changes] == ["delete"]


@pytest.mark.parametrize("after_seconds", [0, 2, 6, 20])
def test_a_removal_continues_in_the_next_process(after_seconds: int) -> None:
    harness = ProviderHarness()
    harness.api.add_pod("web", "n2")
    harness.resize(1, "n2")
    harness.later(after_seconds)
    harness.begin()
    harness.later(30)
    assert harness.group.changes == [("delete", ["n2"])]


def test_a_removal_is_not_delayed_in_a_process_whose_clock_is_behind() -> None:
    harness = ProviderHarness(now=100_000.0)
    harness.resize(1, "n2")
    harness.wall_ahead -= 50.0
    harness.begin()
    harness.later(8)
    assert harness.group.changes == [("delete", ["n2"])]


def test_nodes_that_stay_cost_no_request() -> None:
    harness = ProviderHarness()
    read, get = set[str](), harness.api.get

    def count(path: str, query: Mapping[str, str] | None = None, *, seconds: float | None = None) -> Reply:
        read.add(path)
        return get(path, query, seconds=seconds)

    harness.resize(1, "n2")
    harness.api.get = count  # type: ignore[method-assign]
    harness.later(10)
    assert read == {"/api/v1/nodes/n2", "/api/v1/pods"}


def test_a_deletion_is_not_requested_twice_if_the_process_ends_during_it() -> None:
    harness = ProviderHarness()

    def die() -> None:
        harness.permits = False
        raise OutcomeUnknownError("the process ends")

    harness.group.on_change = die
    harness.resize(1, "n2")
    harness.later(10)
    assert harness.group.changes == [("delete", ["n2"])]
    harness.permits = True
    harness.begin()
    harness.later(300)
    assert harness.group.changes == [("delete", ["n2"])]
    assert REMOVAL in harness.api.nodes["n2"]["metadata"]["annotations"], "the machine is gone, and its Node will be"


def test_the_log_says_what_a_user_can_do_if_a_stopped_removal_cannot_be_undone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    harness = ProviderHarness()
    harness.resize(1, "n2")

    def refuse() -> None:
        raise ForbiddenError("PUT: 403", 403)

    harness.api.before_put, harness.stopped = refuse, "deleteNodes is not configured for plugin/example"
    harness.later(3)
    [message] = [one for one in caplog.messages if "waits" in one]
    assert message.startswith("the removal of the node waits: PUT: 403; grant get and update on nodes")
    assert message.endswith("`kubectl taint node n2 ToBeDeletedByClusterAutoscaler-`, `kubectl uncordon n2`")


def test_a_process_that_loses_the_lease_between_two_evictions_sends_no_more() -> None:
    harness = ProviderHarness()
    for number in range(3):
        harness.api.add_pod(f"web-{number}", "n2")
    harness.resize(1, "n2")
    evict = harness.api.create

    def lose_the_lease(collection: str, document: Mapping[str, Any], *, seconds: float | None = None) -> dict[str, Any]:
        harness.permits = False
        return evict(collection, document, seconds=seconds)

    harness.api.create = lose_the_lease  # type: ignore[method-assign]
    harness.later(100)
    assert (len(harness.api.evicted), harness.is_cordoned("n2"), harness.events) == (1, True, [])
    harness.api.create = evict  # type: ignore[method-assign]
    harness.permits = True
    harness.begin()
    harness.later(10)
    assert (len(harness.api.evicted), harness.group.changes) == (3, [("delete", ["n2"])])


def test_a_node_cordoned_before_its_removal_stays_cordoned() -> None:
    harness = ProviderHarness()
    harness.api.add_node("n2", "x:///2", unschedulable=True)
    harness.resize(1, "n2")
    harness.stopped = "no more"
    harness.later(3)
    assert REMOVAL not in harness.api.nodes["n2"]["metadata"]["annotations"]
    assert harness.api.nodes["n2"]["spec"]["unschedulable"] is True


def test_a_node_that_another_program_is_removing_keeps_its_taint() -> None:
    harness = ProviderHarness()
    taint = {"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}
    harness.api.nodes["n2"]["spec"]["taints"] = [taint]
    outcome = harness.resize(1, "n2")
    assert outcome.result is ScaleResult.REFUSED
    assert "another program is removing it" in outcome.message
    harness.later(10)
    assert (harness.api.nodes["n2"]["spec"]["taints"], harness.group.changes) == ([taint], [])


def test_a_node_with_the_annotation_of_cluster_autoscaler_is_not_removed() -> None:
    harness = ProviderHarness()
    notes = harness.api.nodes["n2"]["metadata"]["annotations"]
    notes["cluster-autoscaler.kubernetes.io/scale-down-disabled"] = "true"
    assert harness.resize(1, "n2").result is ScaleResult.REFUSED
    assert harness.is_usable("n2")


def test_a_removal_waits_for_a_machine_that_is_being_deleted() -> None:
    harness = ProviderHarness()

    def going() -> None:
        harness.group.answers["nodes"] = [
            ProviderInstance("x:///1"),
            ProviderInstance("x:///2", InstanceState.DELETING),
        ]
        raise OutcomeUnknownError("no answer")

    harness.group.on_change = going
    harness.resize(1, "n2")
    harness.later(300)
    assert harness.is_cordoned("n2")
    assert harness.events[-1].reason == "NodeRemoved"
