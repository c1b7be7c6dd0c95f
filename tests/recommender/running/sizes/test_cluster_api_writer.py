from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.sources.kubernetes.errors import DeadlineError, ServerError, UnknownOutcomeError
from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeGroups
from recommender.kinds.cluster_size.model.memory import AskedSize, ClusterSizeMemory
from recommender.kinds.cluster_size.requested_sizes import settled_writes
from recommender.outputs.scale_results import ScaleResult
from tests.recommender.kinds.cluster_size.node_groups.cluster_api_objects import MAX, MIN
from tests.recommender.running.sizes.size_harness import GROUP, POOL, SizeHarness, removal
from tests.support.apiserver_kinds import CLUSTERS, MACHINE_DEPLOYMENTS, MACHINE_POOLS, MACHINES

if TYPE_CHECKING:
    from collections.abc import Callable

GROUP_PATH = "capi/machinedeployments/workers"


@pytest.mark.parametrize("size", [1, 4, 5, 10])
def test_a_machine_deployment_gets_the_size(size: int) -> None:
    harness = SizeHarness()
    harness.change(MACHINE_DEPLOYMENTS, "capi", "workers", lambda one: one["status"].update(readyReplicas=1))
    outcome = harness.resize(size)
    assert harness.size == size
    assert outcome.result is (ScaleResult.UNCHANGED if size == 4 else ScaleResult.OK)
    assert (outcome.before, harness.stored) == (4, 0 if size == 4 else 1)
    assert outcome.stored == (None if size == 4 else size), "an admission webhook may store another one"


def test_a_size_that_an_admission_webhook_undoes_is_a_failure_of_its_group() -> None:
    """As a success it would be written at each decision, and no other group would get the nodes."""
    harness = SizeHarness()
    harness.objects.sent = lambda document: {**document, "spec": {**document["spec"], "replicas": 4}}
    outcome = harness.resize(6)
    assert (outcome.result, outcome.stored, outcome.is_undone) == (ScaleResult.ERROR, 4, True)
    assert outcome.message.startswith("its size is still 4 after 6 was written: look for an admission webhook")
    group = NodeGroup("workers", 1, 10, 4, scalable=GROUP)
    asked = ClusterSizeMemory(asked={"workers": AskedSize(6, 4, 0.0)})
    after = settled_writes(asked, NodeGroups((group,)), {GROUP: outcome}, 10.0, 60.0)
    assert (list(after.back_offs), after.last_scale_up, after.written) == (["workers"], None, {})


def test_no_machine_stays_marked_for_a_removal_that_an_admission_webhook_undoes() -> None:
    """Whoever lowers the size later would delete it."""
    harness = SizeHarness()
    harness.objects.sent = lambda document: {**document, "spec": {**document["spec"], "replicas": 4}}
    outcome = harness.resize(2, removal(1), removal(2))
    assert (outcome.result, outcome.is_undone, harness.marked) == (ScaleResult.ERROR, True, [])
    assert outcome.message.startswith("its size is still 4 after 3 was written: look for an admission webhook")
    assert (outcome.write.replicas, outcome.before, harness.size) == (2, 4, 4)


def test_the_stored_size_is_known_after_removals() -> None:
    assert SizeHarness().resize(2, removal(1), removal(2)).stored == 2


def test_a_machine_pool_gets_the_size() -> None:
    harness = SizeHarness()
    assert harness.resize(6, target=POOL).result is ScaleResult.OK
    assert harness.store.get_without_rights(MACHINE_POOLS, "capi", "pool")["spec"]["replicas"] == 6


def _paused_cluster(harness: SizeHarness) -> None:
    harness.change(CLUSTERS, "capi", "prod", lambda one: one["spec"].update(paused=True))


REFUSALS: list[tuple[Callable[[SizeHarness], object], str]] = [
    (
        lambda harness: harness.annotate(MACHINE_DEPLOYMENTS, "workers", **{MAX: "5"}),
        "6 is outside of its limits, which are 1 to 5",
    ),
    (
        lambda harness: harness.annotate(MACHINE_DEPLOYMENTS, "workers", **{MIN: "5", MAX: "5"}),
        "6 is outside of its limits, which are 5 to 5",
    ),
    (lambda harness: harness.annotate(MACHINE_DEPLOYMENTS, "workers", **{MIN: "x"}), "write a whole number"),
    (
        lambda harness: harness.annotate(MACHINE_DEPLOYMENTS, "workers", **{"cluster.x-k8s.io/paused": ""}),
        "it is paused",
    ),
    (
        lambda harness: harness.annotate(
            MACHINE_DEPLOYMENTS, "workers", **{"cluster.x-k8s.io/replicas-managed-by": "x"}
        ),
        "size to x",
    ),
    (_paused_cluster, "its Cluster prod is paused"),
]


@pytest.mark.parametrize(("change", "message"), REFUSALS)
def test_limits_and_pauses_set_after_the_decision_are_respected(
    change: Callable[[SizeHarness], object], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    harness = SizeHarness()
    change(harness)
    outcome = harness.resize(6)
    assert (outcome.result, harness.size, harness.objects.written) == (ScaleResult.REFUSED, 4, [])
    assert message in outcome.message
    assert [record.getMessage() for record in caplog.records] == [f"the size is not written: {outcome.message}"]


def test_a_limit_that_is_set_between_read_and_write_is_a_conflict() -> None:
    harness = SizeHarness()

    def others(method: str, _path: str) -> None:
        if method == "PUT" and not harness.outcomes:
            harness.annotate(MACHINE_DEPLOYMENTS, "workers", **{MAX: "5"})

    harness.objects.before = others
    assert harness.resize(6).result is ScaleResult.CONFLICT
    harness.wait(3)
    assert harness.outcomes[-1].result is ScaleResult.REFUSED
    harness.wait(3)
    assert len(harness.outcomes) == 2, "a refusal is not repeated before the next decision"
    assert harness.size == 4


def test_a_group_whose_cluster_is_unknown_is_written() -> None:
    harness = SizeHarness()
    harness.store.remove(CLUSTERS, "capi", "prod")
    assert harness.resize(6).result is ScaleResult.OK


def test_a_size_below_the_ready_nodes_is_refused_if_none_is_marked_for_removal() -> None:
    harness = SizeHarness()
    outcome = harness.resize(3)
    assert (outcome.result, outcome.message) == (
        ScaleResult.REFUSED,
        "4 of its nodes are ready, and none is marked for removal",
    )
    assert harness.size == 4


def test_machines_are_marked_and_the_size_is_lowered_by_one_for_each() -> None:
    harness = SizeHarness()
    assert harness.resize(2, removal(3), removal(1)).result is ScaleResult.OK
    assert harness.size == 2
    assert harness.marked == ["m1", "m3"]
    assert harness.objects.written == [
        "capi/machines/m3", f"{GROUP_PATH}/scale", "capi/machines/m1", f"{GROUP_PATH}/scale",
    ]  # fmt: skip
    assert harness.stored == 1


def test_a_removal_is_not_repeated_if_the_scale_call_had_no_answer() -> None:
    harness = SizeHarness()

    def lost(path: str) -> None:
        if path.endswith("/scale") and harness.size == 3:
            raise UnknownOutcomeError("PUT: sent, but no answer")

    harness.objects.after_put = lost
    assert harness.resize(2, removal(3), removal(1)).result is ScaleResult.ERROR
    assert (harness.size, harness.marked) == (3, ["m3"])
    harness.wait(3)
    assert harness.outcomes[-1].result is ScaleResult.OK
    assert (harness.size, harness.marked) == (2, ["m1", "m3"])


@pytest.mark.parametrize("error", [ServerError("500", 500), DeadlineError("not sent")])
def test_a_machine_is_unmarked_if_the_size_is_not_lowered(error: Exception) -> None:
    harness = SizeHarness()

    def fails(method: str, path: str) -> None:
        if method == "PUT" and path.endswith("/scale"):
            raise error

    harness.objects.before = fails
    assert harness.resize(3, removal(2)).result is ScaleResult.ERROR
    assert (harness.size, harness.marked) == (4, [])


def test_a_mark_set_by_others_is_kept_if_the_size_is_not_lowered() -> None:
    harness = SizeHarness()
    harness.annotate(MACHINES, "m2", **{"cluster.x-k8s.io/delete-machine": "yes"})

    def fails(method: str, path: str) -> None:
        if method == "PUT" and path.endswith("/scale"):
            raise ServerError("500", 500)

    harness.objects.before = fails
    harness.resize(3, removal(2))
    assert harness.marked == ["m2"]


def test_a_size_changed_since_the_decision_stops_the_removal() -> None:
    harness = SizeHarness()
    harness.change(MACHINE_DEPLOYMENTS, "capi", "workers", lambda one: one["spec"].update(replicas=6))
    outcome = harness.resize(3, removal(2))
    assert (outcome.result, outcome.message) == (
        ScaleResult.REFUSED,
        "its size is now 6, but the removal was decided at 4",
    )
    assert (harness.size, harness.marked) == (6, [])


def test_a_group_resized_by_others_since_the_decision_keeps_that_size() -> None:
    harness = SizeHarness()
    harness.change(MACHINE_DEPLOYMENTS, "capi", "workers", lambda one: one["spec"].update(replicas=8))
    outcome = harness.resize(6, known_size=4)
    assert (outcome.result, outcome.message) == (ScaleResult.REFUSED, "its size is now 8, but 6 was decided at 4")
    assert harness.size == 8
    assert harness.resize(9, known_size=8).result is ScaleResult.OK


def test_a_removal_stops_at_the_minimum() -> None:
    harness = SizeHarness()
    harness.annotate(MACHINE_DEPLOYMENTS, "workers", **{MIN: "4"})
    assert harness.resize(3, removal(2)).result is ScaleResult.REFUSED
    assert (harness.size, harness.marked) == (4, [])


def test_a_group_above_its_maximum_loses_nodes() -> None:
    harness = SizeHarness()
    harness.annotate(MACHINE_DEPLOYMENTS, "workers", **{MAX: "2"})
    assert harness.resize(3, removal(2)).result is ScaleResult.OK
    assert (harness.size, harness.marked) == (3, ["m2"])
    assert harness.resize(5).message == "5 is outside of its limits, which are 1 to 2"


def test_a_group_above_its_maximum_loses_nodes_that_never_came() -> None:
    harness = SizeHarness()
    harness.annotate(MACHINE_DEPLOYMENTS, "workers", **{MAX: "1"})
    harness.change(MACHINE_DEPLOYMENTS, "capi", "workers", lambda one: one["status"].update(readyReplicas=2))
    assert harness.resize(2).result is ScaleResult.OK
    assert harness.size == 2


def test_a_group_with_more_ready_nodes_than_its_size_still_grows() -> None:
    harness = SizeHarness()
    harness.change(MACHINE_DEPLOYMENTS, "capi", "workers", lambda one: one["status"].update(readyReplicas=9))
    assert (harness.resize(6).result, harness.size) == (ScaleResult.OK, 6)


def test_a_group_below_its_minimum_grows_towards_it() -> None:
    harness = SizeHarness()
    harness.annotate(MACHINE_DEPLOYMENTS, "workers", **{MIN: "7"})
    assert harness.resize(3, removal(2)).message == "3 is outside of its limits, which are 7 to 10"
    assert harness.resize(6).result is ScaleResult.OK
    assert harness.size == 6


def test_the_machines_of_a_pool_cannot_be_chosen() -> None:
    outcome = SizeHarness().resize(3, removal(2), target=POOL)
    assert (outcome.result, outcome.message) == (ScaleResult.REFUSED, "the machines of a MachinePool cannot be chosen")


def _deleting(one: dict[str, dict[str, str]]) -> None:
    one["metadata"]["deletionTimestamp"] = "2026-11-22T12:00:00Z"


def _of_other_node(one: dict[str, dict[str, dict[str, str]]]) -> None:
    one["status"]["nodeRef"]["name"] = "n9"


@pytest.mark.parametrize("change", [_deleting, _of_other_node])
def test_a_machine_that_changed_since_the_decision_stops_its_removal(change: Callable[[object], object]) -> None:
    harness = SizeHarness()
    harness.change(MACHINES, "capi", "m2", change)
    assert harness.resize(3, removal(2)).result is ScaleResult.REFUSED
    assert (harness.size, harness.marked) == (4, [])


@pytest.mark.parametrize("removals", [(), (removal(2),)])
def test_a_fenced_process_sends_nothing(removals: tuple[object, ...]) -> None:
    harness = SizeHarness()
    harness.permits = False
    outcome = harness.resize(3, removal(2)) if removals else harness.resize(6)
    assert (outcome.result, harness.objects.written, harness.size) == (ScaleResult.FENCED, [], 4)


def test_nothing_is_sent_after_the_decision_has_expired() -> None:
    harness = SizeHarness()

    def slow(method: str, path: str) -> None:
        if method == "PUT" and path.endswith("m3"):
            harness.now += 61.0

    harness.objects.before = slow
    outcome = harness.resize(2, removal(3), removal(1))
    assert (outcome.result, harness.size) == (ScaleResult.EXPIRED, 4)
