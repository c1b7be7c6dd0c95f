from __future__ import annotations

from typing import Any

import pytest

from adapter.foundation.sources.kubernetes.errors import ForbiddenError, UnknownOutcomeError
from recommender.kinds.cluster_size.group_writes import buffer_target
from recommender.kinds.cluster_size.model.size_settings import BufferSettings
from recommender.outputs.scale_results import ScaleResult
from tests.recommender.running.sizes.size_harness import BUFFER, OWNER, SizeHarness, resolve
from tests.support.apiserver_kinds import CAPACITY_BUFFERS

FORMER = "tidewatch.io/replicas-before"
SIZED_BY = "tidewatch.io/sized-by"


def buffer(harness: SizeHarness) -> dict[str, Any]:
    return harness.store.get_without_rights(CAPACITY_BUFFERS, "shop", "reserve")


def test_a_buffer_gets_the_size_and_keeps_its_other_fields() -> None:
    harness = SizeHarness()
    assert harness.buffer(7).result is ScaleResult.OK
    assert harness.buffer(9).result is ScaleResult.OK
    assert buffer(harness)["spec"] == {"podTemplateRef": {"name": "chunk"}, "replicas": 9}
    assert buffer(harness)["metadata"]["annotations"] == {FORMER: "2", SIZED_BY: f"{OWNER}/nodes"}
    assert harness.buffer(9).result is ScaleResult.UNCHANGED
    assert len(harness.objects.written) == 2
    assert harness.stored == 2


@pytest.mark.parametrize(
    ("spec", "after"),
    [
        ({"replicas": 2}, {"replicas": 2}),
        ({"percentage": 10}, {"percentage": 10}),
        ({"limits": {"cpu": "4"}}, {"limits": {"cpu": "4"}}),
        ({}, {"replicas": 0}),
    ],
)
def test_withdrawing_a_recommendation_restores_the_former_size(spec: dict[str, Any], after: dict[str, Any]) -> None:
    harness = SizeHarness()
    harness.change(CAPACITY_BUFFERS, "shop", "reserve", lambda one: one.update(spec=spec))
    harness.buffer(7)
    assert harness.buffer(0, withdraws=True).result is ScaleResult.OK
    assert buffer(harness)["spec"] == after
    assert buffer(harness)["metadata"]["annotations"] == {}
    assert harness.buffer(0, withdraws=True).result is ScaleResult.UNCHANGED


def test_a_buffer_that_was_never_written_is_not_changed_by_a_withdrawal() -> None:
    harness = SizeHarness()
    assert harness.buffer(0, withdraws=True).result is ScaleResult.UNCHANGED
    assert harness.objects.written == []


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_the_message_says_what_a_user_can_do_if_the_right_to_restore_a_size_is_missing(method: str) -> None:
    harness = SizeHarness()
    harness.buffer(7)

    def refuse(called: str, _path: str) -> None:
        if called == method:
            raise ForbiddenError(f"{method}: 403", 403)

    harness.objects.before = refuse
    outcome = harness.buffer(0, withdraws=True)
    assert outcome.result is ScaleResult.ERROR
    assert outcome.message.startswith(f"{method}: 403; CapacityBuffer shop/reserve is no longer sized and keeps")
    assert outcome.message.endswith(f"the value of the annotation {FORMER} and remove this and {SIZED_BY}")


def test_a_buffer_that_another_recommender_now_sizes_keeps_its_size() -> None:
    harness = SizeHarness()
    harness.buffer(7)
    others = {SIZED_BY: "elsewhere/tidewatch-recommender/nodes"}
    harness.change(CAPACITY_BUFFERS, "shop", "reserve", lambda one: one["metadata"]["annotations"].update(others))
    assert harness.buffer(0, withdraws=True).result is ScaleResult.UNCHANGED
    assert (buffer(harness)["spec"]["replicas"], buffer(harness)["metadata"]["annotations"][FORMER]) == (7, "2")


@pytest.mark.parametrize(("withdraws", "result"), [(False, ScaleResult.ERROR), (True, ScaleResult.UNCHANGED)])
def test_a_missing_buffer_is_named(*, withdraws: bool, result: ScaleResult) -> None:
    harness = SizeHarness()
    harness.store.remove(CAPACITY_BUFFERS, "shop", "reserve")
    outcome = harness.buffer(7, withdraws=withdraws)
    assert outcome.result is result
    assert withdraws or outcome.message.endswith("create CapacityBuffer shop/reserve, which defines a chunk")


def test_a_concurrent_change_of_a_buffer_is_not_lost() -> None:
    harness = SizeHarness()

    def others(method: str, _path: str) -> None:
        if method == "PUT" and not harness.outcomes:
            harness.change(CAPACITY_BUFFERS, "shop", "reserve", lambda one: one["spec"].update(limits={"cpu": "4"}))

    harness.objects.before = others
    assert harness.buffer(7).result is ScaleResult.CONFLICT
    harness.buffer(8)
    harness.now += 3.0
    harness.buffers.step()
    assert buffer(harness)["spec"] == {"podTemplateRef": {"name": "chunk"}, "replicas": 8, "limits": {"cpu": "4"}}


def test_a_write_without_an_answer_is_followed_by_a_read() -> None:
    harness = SizeHarness()

    def lost(_path: str) -> None:
        raise UnknownOutcomeError("PUT: sent, but no answer")

    harness.objects.after_put = lost
    assert harness.buffer(7).result is ScaleResult.ERROR
    harness.now += 3.0
    harness.buffers.step()
    assert harness.outcomes[-1].result is ScaleResult.UNCHANGED
    assert len(harness.objects.written) == 1


def test_a_buffer_is_written_in_the_served_version() -> None:
    assert buffer_target(BufferSettings("shop", "reserve"), resolve) == BUFFER
