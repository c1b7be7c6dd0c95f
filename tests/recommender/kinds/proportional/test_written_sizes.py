"""Sizes that follow the cluster's size, with the output `resize`: brakes, HPAs, refusals, and what is written."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.cluster.values.state import Autoscaler, ClusterState, Observed, Unknown
from adapter.foundation.time.clock import Clock
from recommender.configuration.reading import read_configuration
from recommender.decisions.inputs import Inputs, TargetState, WriteRefusal
from recommender.decisions.memory import LastValue, Memory
from recommender.decisions.record import Status, TargetAction, TargetReference
from recommender.decisions.targets.vertical_autoscalers import vertical_autoscaler_kinds
from recommender.kinds.proportional.memory import ProportionalMemory, restore_memory
from recommender.outputs.pending_writes import PendingWrite, RequestedSize, Resizing
from recommender.printed.document import recommendation_list
from recommender.running.inputs.poll_plan import plan_of
from recommender.running.memory.memories import Memories
from recommender.running.memory.store_protocol import ProcessMemoryStore
from recommender.running.polls.poll_decisions import PollDecisions
from tests.recommender.configuration.files import entry, problems_of, whole
from tests.recommender.kinds.proportional.clusters import NOW, nodes_of

if TYPE_CHECKING:
    from recommender.decisions.loop import Decision

MIB = 2**20
DNS = TargetReference("apps/v1", "Deployment", "kube-system", "coredns")
TARGETS = "targets: [{apiVersion: apps/v1, kind: Deployment, namespace: kube-system, name: coredns}]"
JOB = "targets: [{apiVersion: batch/v1, kind: CronJob, namespace: kube-system, name: coredns}]"
BOTH = "outputs: [metric, resize]"
CPU = "cpu: {base: 100m, step: 10m, nodesPerStep: 1}"
MEMORY = "memory: {base: 64Mi, step: 2Mi, nodesPerStep: 4}"
SIZES = f"resources: {{dns: {{requests: {{{CPU}, {MEMORY}}}, limits: {{memory: {{base: 1Gi}}}}}}}}"


def content(*lines: str, kind: str = SIZES, name: str = "dns") -> str:
    return entry(name, *lines, kind=f"proportional: {{{kind}}}")


def inputs(nodes: int = 5, *autoscalers: Autoscaler, **changes: Any) -> Inputs:  # noqa: ANN401 - fields of Inputs
    state = ClusterState(
        nodes=Observed(tuple(nodes_of(nodes, nodes)), NOW), autoscalers={"kube-system": Observed(autoscalers, NOW)}
    )
    targets: dict[TargetReference, Any] = {DNS: Observed(TargetState(2), NOW)}
    return replace(Inputs(state, targets=targets), **changes)


def decisions(given: Inputs, *entries: str, last: dict[str, int] | None = None) -> list[Decision]:
    configuration = read_configuration(whole(*entries), "r.yaml")
    assert not configuration.refused, configuration.refused
    memories = Memories(ProcessMemoryStore())
    if last is not None:
        for name in memories.begin(("dns",), 1.0, {}):
            memories.load(name)
        own = ProportionalMemory(sizes={"dns": {"requests": last}})
        memories.remember("dns", Memory(LastValue(None, NOW - 10, NOW - 10), (NOW - 10,), own=own))
    found = PollDecisions(memories, Clock()).decide(plan_of(configuration), given, NOW)
    return [decision for each in found for decision in each.decisions]


def decided(*lines: str, given: Inputs | None = None, last: dict[str, int] | None = None) -> Decision:
    [decision] = decisions(given or inputs(), content(TARGETS, *lines), last=last)
    return decision


def hpa(*resources: str) -> Autoscaler:
    return Autoscaler("kube-system", "dns", {}, "apps/v1", "Deployment", "coredns", 1, 9, None, None, (), resources)


def resources_of(decision: Decision) -> Any:  # noqa: ANN401 - JSON
    document: Any = recommendation_list([decision.record], NOW)
    return document["items"][0]["resources"]


def written(decision: Decision) -> Resizing:
    assert isinstance(decision.writes, PendingWrite)
    assert decision.writes.target == DNS
    assert decision.writes.resizing is not None
    return decision.writes.resizing


def test_recommended_requests_and_limits_are_written() -> None:
    decision = decided(BOTH)
    assert resources_of(decision) == {
        "dns": {"requests": {"cpu": "150m", "memory": "68Mi"}, "limits": {"memory": "1Gi"}}
    }
    resizing = written(decision)
    assert resizing.sizes == (RequestedSize("dns", "cpu", 150), RequestedSize("dns", "memory", 68 * MIB))
    assert resizing.limits == (RequestedSize("dns", "memory", 1024 * MIB),)
    assert (resizing.threshold_ratio, resizing.in_place) == (0.1, True)
    assert decision.record.status is Status.OK


@pytest.mark.parametrize("outputs", ["outputs: [metric]", BOTH])
def test_a_vertical_pod_autoscaler_that_sizes_the_target_is_named(outputs: str) -> None:
    spec = {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "coredns"}}
    [kind] = vertical_autoscaler_kinds(["kube-system"])
    found: Any = Observed(({"metadata": {"namespace": "kube-system", "name": "dns"}, "spec": spec},), NOW)
    given = inputs()
    note = "VerticalPodAutoscaler kube-system/dns sizes it too (updateMode Auto)"
    seen = replace(given, cluster=replace(given.cluster, objects={kind: found}))
    assert note in decided(outputs, given=seen).record.message
    unknown = replace(given, cluster=replace(given.cluster, objects={kind: Unknown("not served", is_refused=True)}))
    assert decided(outputs, given=unknown).record == decided(outputs, given=given).record


def test_without_the_output_nothing_is_written() -> None:
    assert decided("outputs: [metric]").writes is None


@pytest.mark.parametrize(
    ("lines", "last", "cpu", "status"),
    [
        ((), {"cpu": 1000}, 150, Status.OK),
        (("maxStep: 20%",), {"cpu": 1000}, 800, Status.OK),
        (("maxStep: 20%",), {"cpu": 100}, 120, Status.OK),
        (("maxStep: 20%",), None, 150, Status.OK),
        (("maxChangesPerHour: 1",), {"cpu": 100}, 100, Status.HELD),
        (("maxChangesPerHour: 1",), None, 150, Status.OK),
        (("paused: true",), {"cpu": 100}, 100, Status.HELD),
        (("paused: up",), {"cpu": 100}, 100, Status.HELD),
        (("paused: down",), {"cpu": 100}, 150, Status.OK),
    ],
)
def test_brakes_apply_to_sizes(lines: tuple[str, ...], last: dict[str, int] | None, cpu: int, status: Status) -> None:
    decision = decided(BOTH, *lines, last=last)
    assert next(each.amount for each in written(decision).sizes if each.resource == "cpu") == cpu
    assert decision.record.status is status


def test_each_size_that_a_brake_changes_has_a_step() -> None:
    record = decided(BOTH, "maxStep: 20%", last={"cpu": 1000, "memory": 68 * MIB}).record
    assert [(step.step, step.value) for step in record.steps] == [("dns/requests/cpu/maxStep", 0.8)]


@pytest.mark.parametrize(
    ("pause", "up", "down"),
    [("true", False, False), ("up", False, True), ("down", True, False)],
)
def test_a_pause_forbids_writes_in_its_direction(pause: str, up: bool, down: bool) -> None:  # noqa: FBT001 - columns
    decision = decided(BOTH, f"paused: {pause}", last={"cpu": 150, "memory": 68 * MIB})
    assert (written(decision).up, written(decision).down) == (up, down)
    [outcome] = decision.record.targets
    assert (outcome.action is TargetAction.RESIZE) is (up or down)


def test_a_resource_that_an_hpa_follows_is_not_resized() -> None:
    decision = decided(BOTH, given=inputs(5, hpa("cpu")))
    assert decision.record.status is Status.HELD
    assert "HorizontalPodAutoscaler dns follows cpu" in decision.record.message
    assert [each.resource for each in written(decision).sizes] == ["memory"]
    assert "cpu" not in resources_of(decision)["dns"]["requests"]


def test_nothing_is_written_while_hpas_cannot_be_read() -> None:
    given = inputs()
    state = replace(given.cluster, autoscalers={"kube-system": Unknown("forbidden")})
    decision = decided(BOTH, given=replace(given, cluster=state))
    assert decision.writes is None
    assert "one of them may follow cpu" in decision.record.message


def test_a_resource_held_for_an_hpa_keeps_its_remembered_size() -> None:
    for autoscalers in ((), (hpa("cpu"),)):
        own = decided(BOTH, "maxStep: 20%", given=inputs(5, *autoscalers), last={"cpu": 100}).memory.own
        assert isinstance(own, ProportionalMemory)
        assert own.sizes["dns"]["requests"]["cpu"] == (100 if autoscalers else 120)


def test_an_hpa_that_follows_another_resource_holds_nothing() -> None:
    kind = f"resources: {{dns: {{requests: {{{CPU}}}}}}}"
    [decision] = decisions(inputs(5, hpa("memory")), content(TARGETS, BOTH, kind=kind))
    assert decision.record.status is Status.OK


@pytest.mark.parametrize(
    ("last", "autoscalers", "changes"),
    [
        ({"cpu": 100, "memory": 68 * MIB}, (), (NOW - 10, NOW)),
        ({"cpu": 150, "memory": 68 * MIB}, (), (NOW - 10,)),
        ({"cpu": 100, "memory": 68 * MIB}, (hpa("cpu"),), (NOW - 10,)),
        ({"memory": 68 * MIB}, (), (NOW - 10,)),
    ],
    ids=["another size", "the same", "another size of a resource that an HPA follows", "a first size"],
)
def test_only_sizes_that_are_changed_count_as_a_change(
    last: dict[str, int], autoscalers: tuple[Autoscaler, ...], changes: tuple[float, ...]
) -> None:
    given = inputs(5, *autoscalers)
    assert decided(BOTH, "maxChangesPerHour: 9", given=given, last=last).memory.changes == changes
    # No further change is allowed here.
    is_stopped = "in the last hour" in decided(BOTH, "maxChangesPerHour: 1", given=given, last=last).record.message
    assert is_stopped is (len(changes) > 1)


def test_also_with_hpa_resizes_resources_that_an_hpa_follows() -> None:
    [decision] = decisions(inputs(5, hpa("cpu")), content(TARGETS, BOTH, kind=f"{SIZES}, alsoWithHPA: true"))
    assert [each.resource for each in written(decision).sizes] == ["cpu", "memory"]


def test_without_nodes_nothing_is_written() -> None:
    given = inputs()
    decision = decided(BOTH, given=replace(given, cluster=replace(given.cluster, nodes=Unknown("not listed yet"))))
    assert decision.writes is None
    assert decision.record.status is Status.STALE


def test_the_action_shows_whether_something_remains_to_be_written() -> None:
    def action(decision: Decision) -> TargetAction:
        [outcome] = decision.record.targets
        return outcome.action

    first = decided(BOTH)
    assert action(first) is TargetAction.RESIZE
    in_place = {("dns", DNS): written(first)}
    assert action(decided(BOTH, given=inputs(settled=in_place))) is TargetAction.METRIC
    assert action(decided("outputs: [resize]", given=inputs(settled=in_place))) is TargetAction.NONE
    assert action(decided(BOTH, given=inputs(50, settled=in_place))) is TargetAction.RESIZE
    refusal = WriteRefusal("VerticalPodAutoscaler kube-system/dns", "it writes its requests")
    assert action(decided(BOTH, given=inputs(refusals={("dns", DNS): refusal}))) is TargetAction.REFUSED


@pytest.mark.parametrize(
    "other",
    [
        content(TARGETS, BOTH, name="other"),
        entry("other", TARGETS, BOTH, kind="resources: {fromUsage: {}}"),
    ],
    ids=["by the cluster's size", "by use"],
)
def test_two_entries_that_write_one_workload_are_both_refused(other: str) -> None:
    top = "prometheus: {url: http://127.0.0.1:9}\n"
    configuration = read_configuration(whole(content(TARGETS, BOTH), other, top=top), "r.yaml")
    found = PollDecisions(Memories(ProcessMemoryStore()), Clock()).decide(plan_of(configuration), inputs(), NOW)
    [decision] = found[0].decisions
    assert decision.writes is None
    assert [outcome.action for outcome in decision.record.targets] == [TargetAction.REFUSED]


@pytest.mark.parametrize(
    ("lines", "kind", "expected"),
    [
        ((TARGETS, BOTH), "linear: {nodesPerReplica: 2}", "the output resize writes `resources`"),
        ((TARGETS, BOTH), f"linear: {{nodesPerReplica: 2}}, {SIZES}", "this is for a number of replicas"),
        ((BOTH,), SIZES, "for exactly one target"),
        ((JOB, BOTH), SIZES, "the output resize cannot write CronJob"),
        ((TARGETS, BOTH, "maxStep: 2"), SIZES, "maxStep is a number of replicas"),
        ((TARGETS,), f"{SIZES}, resize: {{threshold: 5%}}", "`resize` has no effect without the output"),
        ((TARGETS,), f"{SIZES}, alsoWithHPA: true", "`alsoWithHPA` has no effect without the output"),
        (
            (TARGETS, BOTH), "resources: {dns: {requests: {ephemeral-storage: {base: 1Gi}}}}",
            "cannot write ephemeral-storage of container dns",
        ),
    ],
)  # fmt: skip
def test_an_entry_that_cannot_be_written_is_refused_when_read(lines: tuple[str, ...], kind: str, expected: str) -> None:
    problems = problems_of(whole(content(*lines, kind=kind)))
    assert any(expected in problem for problem in problems), problems


def test_a_pause_before_the_first_decision_recommends_and_remembers_no_sizes() -> None:
    decision = decided(BOTH, "paused: true")
    assert (decision.record.status, decision.record.has_value, decision.writes) == (Status.HELD, False, None)
    assert restore_memory(decision.memory.own).sizes == {}
