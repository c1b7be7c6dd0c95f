"""A size begins from the current one only if it is written, and it is not if something else owns the target."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.cluster.values.state import Autoscaler, ClusterState, Observed, Unknown
from recommender.configuration.reading import read_configuration
from recommender.decisions.inputs import Inputs, ReplacedSize, TargetState
from recommender.decisions.loads.load_inputs import LoadInput
from recommender.decisions.loads.prediction import PredictedLoad, Prediction
from recommender.decisions.loop import decide
from recommender.decisions.memory import LastValue, Memory
from recommender.kinds.predictive.kind import KIND
from recommender.kinds.predictive.policy.memory import PolicyMemory
from tests.recommender.configuration.files import entry, whole
from tests.recommender.decisions.harness import NOW, WEB, autoscaler

if TYPE_CHECKING:
    from recommender.decisions.record import TargetReference
    from recommender.kinds.kind import Recommendation

HPA = replace(autoscaler(), namespace=WEB.namespace, target_name=WEB.name)
TARGET = f"{{apiVersion: {WEB.api_version}, kind: {WEB.kind}, namespace: {WEB.namespace}, name: {WEB.name}}}"
KIND_OF_ENTRY = "predictive: {load: x, loadPerReplica: 1, horizon: 2m, headroom: 0%, maxReplicas: 999}"


def web(*lines: str) -> Recommendation:
    """Return a recommendation that writes the size of its target."""
    lines = (*lines, "outputs: [metric, scale]")
    if not any(line.startswith("targets:") for line in lines):
        lines = (f"targets: [{TARGET}]", *lines)
    text = whole(entry("web", *lines, kind=KIND_OF_ENTRY), top="prometheus: {url: 'http://p'}\n")
    [recommendation] = read_configuration(text, "r.yaml").recommendations
    return recommendation


def inputs(state: TargetState, hpas: tuple[Autoscaler, ...] | Unknown) -> Inputs:
    """Return a load of 8 replicas, and what is known of the target."""
    found = hpas if isinstance(hpas, Unknown) else Observed(hpas, NOW)
    return Inputs(
        cluster=ClusterState(autoscalers={WEB.namespace: found}),
        loads={"web": {None: Observed(LoadInput(Prediction(PredictedLoad(8.0, None, None), "linear", "")), NOW)}},
        targets={WEB: Observed(state, NOW)},
    )


def decided(memory: Memory, state: TargetState, hpas: tuple[Autoscaler, ...] | Unknown, *lines: str) -> int | None:
    """Return the size for a load of 8 replicas."""
    recommendation = web(*lines)
    calculate = KIND.calculation(recommendation, ())(None)
    return decide(recommendation.policy, calculate, inputs(state, hpas), memory, NOW).record.replicas


def remembered(replicas: int) -> Memory:
    """Return the memory of an hour ago."""
    then = NOW - 3600.0
    own = PolicyMemory(time=then, capacity=float(replicas), desired_sizes=((then, replicas),))
    return Memory(last=LastValue(replicas, then, then), own=own)


@pytest.mark.parametrize(
    ("state", "hpas", "size"),
    [
        ({}, (), 100),
        ({}, (HPA,), 10),
        ({"replicas_managers": ("argocd-controller",)}, (), 10),
        ({"replaced": ReplacedSize(100, NOW + 900.0)}, (), 100),
        ({}, Unknown("they are not known yet", is_awaited=True), 10),
    ],
    ids=["no owner", "an HPA", "a field manager", "for some time", "unknown"],
)
@pytest.mark.parametrize("lines", [(), ("paused: down",)], ids=["", "paused"])
def test_after_a_gap_a_size_begins_from_the_current_one_unless_something_else_owns_it(
    state: dict[str, Any], hpas: tuple[Autoscaler, ...] | Unknown, size: int, lines: tuple[str, ...]
) -> None:
    """An HPA may have grown by another of its metrics, or by its minReplicas."""
    assert decided(remembered(10), TargetState(100, **state), hpas, *lines) == size


@pytest.mark.parametrize(("hpas", "size"), [((), 100), ((HPA,), 8)], ids=["no owner", "an HPA"])
def test_a_first_size_is_held_only_if_it_is_written(hpas: tuple[Autoscaler, ...], size: int) -> None:
    assert decided(Memory(), TargetState(100), hpas) == size


@pytest.mark.parametrize(("rivals", "size"), [({}, 100), ({WEB: ("other",)}, 10)], ids=["none", "found by the poll"])
def test_another_recommendation_that_a_poll_finds_owns_the_target(
    rivals: dict[TargetReference, tuple[str, ...]], size: int
) -> None:
    recommendation, given = web(), inputs(TargetState(100), ())
    policy = replace(recommendation.policy, rivals=rivals)
    calculate = KIND.calculation(recommendation, ())(None)
    assert decide(policy, calculate, given, remembered(10), NOW).record.replicas == size


@pytest.mark.parametrize("is_first", [True, False], ids=["without a memory", "after a gap"])
def test_the_owner_of_one_of_several_targets_is_that_of_its_decision(is_first: bool) -> None:  # noqa: FBT001 - a row
    """The HPA of one target says nothing about the other."""
    recommendation = web(f"targets: [{TARGET}, {TARGET.replace('name: web', 'name: api')}]")
    first, second = recommendation.policy.targets
    given = replace(inputs(TargetState(100), (HPA,)))
    given = replace(given, targets={first: Observed(TargetState(100), NOW), second: Observed(TargetState(20), NOW)})
    memory = Memory() if is_first else Memory(by_target=dict.fromkeys((first, second), remembered(10)))
    calculate = KIND.calculation(recommendation, ())(None)
    decision = decide(recommendation.policy, calculate, given, memory, NOW)
    sizes = {target: one.last.replicas for target, one in decision.memory.by_target.items() if one.last is not None}
    assert sizes == {first: 8 if is_first else 10, second: 20}


def test_a_size_begins_from_the_current_one_once_it_is_known_that_nothing_owns_it() -> None:
    recommendation, calculate = web(), KIND.calculation(web(), ())(None)
    awaited = inputs(TargetState(100), Unknown("they are not known yet", is_awaited=True))
    before = decide(recommendation.policy, calculate, awaited, Memory(), NOW)
    after = decide(recommendation.policy, calculate, inputs(TargetState(100), ()), before.memory, NOW + 10.0)
    assert after.record.replicas == 100
