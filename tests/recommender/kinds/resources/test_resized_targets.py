"""The output `resize`: what is written, and what keeps a request from being written."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.cluster.values.state import ClusterState, Observed
from adapter.foundation.time.clock import Clock
from recommender.configuration.reading import read_configuration
from recommender.decisions.inputs import Inputs, WriteRefusal
from recommender.decisions.memory import Memory
from recommender.decisions.record import TargetAction
from recommender.decisions.targets.vertical_autoscalers import vertical_autoscaler_kinds
from recommender.kinds.resources.resources_memory import ResourcesMemory
from recommender.kinds.resources.size_record import WorkloadUsage
from recommender.outputs.pending_writes import PendingWrite, StepLimit
from recommender.running.inputs.poll_plan import plan_of
from recommender.running.memory.memories import Memories
from recommender.running.memory.store_protocol import ProcessMemoryStore
from recommender.running.polls.poll_decisions import PollDecisions
from tests.recommender.configuration.files import entry, whole
from tests.recommender.kinds.resources.usage_decisions import (
    MIB,
    NOW,
    TOP,
    WEB,
    cluster,
    decided,
    inputs,
    last,
    plan,
    size,
    usage,
)

if TYPE_CHECKING:
    from recommender.running.inputs.poll_plan import PollPlan


RESIZED = plan("outputs: [metric, resize]")


@pytest.mark.parametrize(
    ("followed", "used", "changes", "action"),
    [
        (plan(), 300, {}, TargetAction.METRIC),
        (RESIZED, 300, {}, TargetAction.RESIZE),
        (RESIZED, 1050, {"memory": 1024 * MIB}, TargetAction.METRIC),
        (plan("outputs: [resize]"), 1050, {"memory": 1024 * MIB}, TargetAction.NONE),
        (plan("outputs: [metric, resize]", "paused: true"), 300, {}, TargetAction.METRIC),
    ],
    ids=["without the output", "far enough", "too small a change", "without metric", "paused"],
)
def test_the_action_shows_whether_requests_are_written(
    followed: PollPlan, used: int, changes: dict[str, int], action: TargetAction
) -> None:
    [record] = decided(followed, inputs({WEB: usage(used, **changes)}), last(500))
    assert [outcome.action for outcome in record.targets] == [action]


def test_a_refused_write_names_its_owner() -> None:
    given = inputs({WEB: usage()})
    refusal = WriteRefusal("VerticalPodAutoscaler shop/v", "it writes its requests")
    [record] = decided(RESIZED, replace(given, refusals={("sizes", WEB): refusal}))
    [outcome] = record.targets
    assert (outcome.action, outcome.owner) == (TargetAction.REFUSED, "VerticalPodAutoscaler shop/v")


def test_two_recommendations_that_write_one_workload_are_both_refused() -> None:
    entries = [
        entry(name, "outputs: [resize]", kind="resources: {fromUsage: {}, forEach: {}}") for name in ("one", "two")
    ]
    followed = plan_of(read_configuration(whole(*entries, top=TOP), "r.yaml"))
    known: dict[Any, Any] = {WEB: Observed(usage(), NOW)}
    records = decided(followed, Inputs(cluster(), usage={"one": known, "two": known}))
    assert {outcome.action for record in records for outcome in record.targets} == {TargetAction.REFUSED}


def test_a_paused_request_is_written_in_neither_direction() -> None:
    plans = plan("outputs: [resize]", "paused: true")
    memories = Memories(ProcessMemoryStore())
    [found] = PollDecisions(memories, Clock()).decide(plans, inputs({WEB: usage()}), NOW)
    [decision] = found.decisions
    assert isinstance(decision.writes, PendingWrite)
    assert decision.writes.resizing is not None
    assert (decision.writes.resizing.up, decision.writes.resizing.down) == (False, False)


@pytest.mark.parametrize(
    ("changes", "may_shrink"),
    [
        ({"cpu": size(300), "history_seconds": 3600.0}, False),
        ({"memory": size(400 * MIB), "memory_history_seconds": 3600.0}, False),
        ({"cpu": size(300), "memory_history_seconds": 3600.0}, True),
        ({"cpu": size(300)}, True),
        ({"history_seconds": 3600.0}, True),
    ],
    ids=["CPU", "memory", "known for long enough", "a day", "known requests"],
)
def test_an_unknown_request_is_not_lowered_while_little_is_known(
    changes: dict[str, Any],
    may_shrink: bool,  # noqa: FBT001 - a table
) -> None:
    memories = Memories(ProcessMemoryStore())
    found = replace(usage().sizes[0], **changes)
    given = inputs({WEB: WorkloadUsage((found,))})
    [decided_now] = PollDecisions(memories, Clock()).decide(RESIZED, given, NOW)
    [decision] = decided_now.decisions
    assert isinstance(decision.writes, PendingWrite)
    assert decision.writes.resizing is not None
    assert (decision.writes.resizing.up, decision.writes.resizing.down) == (True, may_shrink)
    assert ("kube-state-metrics" in decision.record.message) is not may_shrink


@pytest.mark.parametrize(
    ("lines", "current", "memory", "step", "is_remembered"),
    [
        (("maxStep: 10%",), None, None, StepLimit(0.1, 25, 4000), False),
        (("maxStep: 10%",), 1000, None, None, True),
        (("maxStep: 10%",), None, last(320), None, True),
        ((), None, None, None, True),
    ],
    ids=["unknown", "known", "remembered", "without maxStep"],
)
def test_max_step_is_left_to_the_writer_where_the_present_request_is_not_known(
    lines: tuple[str, ...],
    current: int | None,
    memory: Memory | None,
    step: StepLimit | None,
    is_remembered: bool,  # noqa: FBT001 - a table
) -> None:
    memories = Memories(ProcessMemoryStore())
    kind = "fromUsage: {}, forEach: {namespaces: [shop]}, min: {cpu: 25m}, max: {cpu: 4}"
    followed = plan("outputs: [metric, resize]", *lines, kind=kind)
    if memory is not None:
        for name in memories.begin(("sizes",), 1.0, {name: each.shards for name, each in followed.for_each.items()}):
            memories.load(name)
        memories.remember("sizes", Memory(by_target={WEB: memory}))
    given = inputs({WEB: usage(cpu=300) if current else WorkloadUsage((replace(usage().sizes[0], cpu=size(300)),))})
    [found] = PollDecisions(memories, Clock()).decide(followed, given, NOW)
    [decision] = found.decisions
    assert isinstance(decision.writes, PendingWrite)
    assert decision.writes.resizing is not None
    steps = {each.resource: each.step for each in decision.writes.resizing.sizes}
    assert steps == {"cpu": step, "memory": None}
    assert isinstance(decision.memory.own, ResourcesMemory)
    assert ("cpu" in decision.memory.own.sizes["app"]) is is_remembered


def with_vertical(mode: str, namespace: str = "shop") -> ClusterState:
    spec = {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "updatePolicy": {"updateMode": mode},
    }
    document = {"metadata": {"namespace": namespace, "name": "v"}, "spec": spec}
    [kind] = vertical_autoscaler_kinds([""])
    return replace(cluster(), objects={kind: Observed((document,), NOW)})


@pytest.mark.parametrize("outputs", ["metric", "resize"])
def test_an_active_vertical_pod_autoscaler_is_named_whatever_the_output(outputs: str) -> None:
    note = (
        "VerticalPodAutoscaler shop/v sizes it too (updateMode Recreate): set that to Off, or follow only one of them"
    )
    followed = plan(f"outputs: [{outputs}]")
    [record] = decided(followed, inputs({WEB: usage()}, with_vertical("Recreate")))
    assert record.message == f"app: cpu 300m, memory 400Mi; {note}"
    for state in (with_vertical("Off"), with_vertical("Recreate", "other")):
        [unaffected] = decided(followed, inputs({WEB: usage()}, state))
        assert unaffected.message == "app: cpu 300m, memory 400Mi"


def test_a_vertical_pod_autoscaler_that_refuses_a_write_is_named_once() -> None:
    refusal = WriteRefusal("VerticalPodAutoscaler shop/v", "it writes its requests")
    given = replace(inputs({WEB: usage()}, with_vertical("Auto")), refusals={("sizes", WEB): refusal})
    [record] = decided(RESIZED, given)
    assert "VerticalPodAutoscaler" not in record.message
    assert record.targets[0].owner == "VerticalPodAutoscaler shop/v"
