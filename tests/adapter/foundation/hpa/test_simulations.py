"""Whole runs of the controller's own functions: windows and rates over time, carried by the history."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from adapter.foundation.hpa.evaluation import evaluate
from adapter.foundation.hpa.proposals import HpaWorkload, Totals
from adapter.foundation.hpa.rules import Behaviour, PolicyType, ScalingPolicy, ScalingRules, SelectPolicy
from adapter.foundation.hpa.spec import AverageValue, ExternalMetric, HPASpec, Settings

if TYPE_CHECKING:
    from adapter.foundation.hpa.decision import HpaDecision
    from adapter.foundation.hpa.history import HpaHistory

RUNS: Final = json.loads(Path(__file__).with_name("simulations.json").read_text(encoding="utf-8"))["simulations"]


def rules(given: dict[str, Any]) -> ScalingRules:
    policies = tuple(ScalingPolicy(PolicyType(kind), value, period) for kind, value, period in given["policies"])
    return ScalingRules(policies, SelectPolicy(given["select"]), given["window_s"])


def spec_of(run: dict[str, Any]) -> HPASpec:
    given = run["behaviour"]
    return HPASpec(
        metrics=(ExternalMetric("load", AverageValue(1000)),),
        min_replicas=run["min"],
        max_replicas=run["max"],
        behaviour=Behaviour(rules(given["up"]), rules(given["down"])) if given else None,
        settings=Settings(tolerance=0.0, downscale_stabilization_seconds=run["default_window_s"]),
    )


def behaviour_of(decision: HpaDecision) -> list[int | str | None]:
    """Return the number after the look-back and the decided number, with the reason of each."""
    steps = {step.step: step for step in decision.steps}
    stabilized, limited = steps["stabilized"], steps["limited"]
    return [stabilized.value, decision.desired, stabilized.detail, limited.detail]


@pytest.mark.parametrize("run", RUNS, ids=range(len(RUNS)))
def test_every_evaluation_decides_as_the_controller_does(run: dict[str, Any]) -> None:
    spec = spec_of(run)
    replicas: int = run["start"]
    history: HpaHistory | None = None
    for now, wanted, *expected in run["ticks"]:
        decision = evaluate(spec, HpaWorkload(replicas, replicas), [Totals((wanted * 1000,))], history, now=now)
        assert behaviour_of(decision) == expected, f"at {now} s"
        replicas, history = decision.desired, decision.history
