"""A size begins from the current one only if it is written, and it is not if something else owns the target."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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

HPA = replace(autoscaler(), namespace=WEB.namespace, target_name=WEB.name)
TARGET = f"{{apiVersion: {WEB.api_version}, kind: {WEB.kind}, namespace: {WEB.namespace}, name: {WEB.name}}}"
KIND_OF_ENTRY = "predictive: {load: x, loadPerReplica: 1, horizon: 2m, headroom: 0%, maxReplicas: 999}"


def decided(memory: Memory, state: TargetState, hpas: tuple[Autoscaler, ...] | Unknown, *lines: str) -> int | None:
    """Return the size for a load of 8 replicas."""
    lines = (f"targets: [{TARGET}]", "outputs: [metric, scale]", *lines)
    text = whole(entry("web", *lines, kind=KIND_OF_ENTRY), top="prometheus: {url: 'http://p'}\n")
    [recommendation] = read_configuration(text, "r.yaml").recommendations
    found = hpas if isinstance(hpas, Unknown) else Observed(hpas, NOW)
    given = Inputs(
        cluster=ClusterState(autoscalers={WEB.namespace: found}),
        loads={"web": {None: Observed(LoadInput(Prediction(PredictedLoad(8.0, None, None), "linear", "")), NOW)}},
        targets={WEB: Observed(state, NOW)},
    )
    calculate = KIND.calculation(recommendation, ())(None)
    return decide(recommendation.policy, calculate, given, memory, NOW).record.replicas


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
        ({}, Unknown("they are not known yet", is_awaited=True), 100),
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
