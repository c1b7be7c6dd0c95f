"""Rules that each registered mode must keep; a new mode is tested here without additional code."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recommender.kinds.proportional.calculate import DriversTrail
from recommender.kinds.proportional.modes.mode_definition import ClusterSize, ModeDefinition, ParameterKind, Values
from recommender.kinds.proportional.modes.registry import MODES, steps_of
from recommender.kinds.proportional.modes.rungs import ambiguous_rungs
from recommender.kinds.proportional.parameters import Interpolated

NUMBERS: Final = st.integers(0, 5000)
DRIVERS: Final = (["nodes", "cores"], ["nodes"], ["cores"])
FEW: Final = settings(max_examples=30)
RUNGS: Final = st.lists(st.tuples(NUMBERS, st.integers(0, 100)), max_size=5)


def ascending(rungs: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return rungs whose replicas increase with their thresholds."""
    thresholds = sorted({threshold for threshold, _ in rungs})
    return tuple(zip(thresholds, sorted(replicas for _, replicas in rungs), strict=False))


def of_kind(
    keys: dict[str, ParameterKind], kind: ParameterKind, values: st.SearchStrategy[Any]
) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional={key: values for key, found in keys.items() if found is kind})


def parameters_of(mode: ModeDefinition[Any]) -> st.SearchStrategy[Any]:
    """Return parameters that the mode accepts."""
    keys = dict(mode.keys)
    values = st.builds(
        Values,
        ratios=of_kind(keys, ParameterKind.RATIO, st.floats(0.1, 500)),
        counts=of_kind(keys, ParameterKind.COUNT, st.integers(0, 200)),
        flags=of_kind(keys, ParameterKind.FLAG, st.booleans()),
        rungs=of_kind(keys, ParameterKind.RUNGS, RUNGS.map(ascending)),
    )
    return values.filter(lambda made: not any(mode.flaws(made))).map(mode.parameters_of)


def final(counts: ClusterSize, parameters: Any) -> DriversTrail:  # noqa: ANN401 - the parameters of any mode
    steps = steps_of(counts, parameters)
    trail = DriversTrail(steps.drivers)
    trail.limit(steps.limits)
    return trail


MODE: Final = pytest.mark.parametrize("mode", MODES.values(), ids=MODES)


@MODE
@FEW
@given(data=st.data(), nodes=NUMBERS, cores=NUMBERS)
def test_the_steps_of_a_mode_are_consistent(
    mode: ModeDefinition[Any], data: st.DataObject, nodes: int, cores: int
) -> None:
    parameters = data.draw(parameters_of(mode))
    names = [step.step for step in steps_of(ClusterSize(nodes, cores), parameters).drivers]
    trail = final(ClusterSize(nodes, cores), parameters)
    lowest, highest = getattr(parameters, "min", 0), getattr(parameters, "max", 0)
    spread = 2 if getattr(parameters, "prevent_single_point_failure", False) else 0
    assert names in [[f"{mode.name}/{name}" for name in drivers] for drivers in DRIVERS]
    assert min(step.value for step in trail.steps) >= 0
    assert lowest <= trail.value
    assert not highest or trail.value <= max(highest, spread)
    assert next(step.value for step in reversed(trail.steps) if step.step == trail.binding) == trail.value


@MODE
@FEW
@given(data=st.data(), nodes=NUMBERS, cores=NUMBERS, more_nodes=NUMBERS, more_cores=NUMBERS)
def test_a_mode_never_falls_when_the_cluster_grows(
    mode: ModeDefinition[Any], data: st.DataObject, nodes: int, cores: int, more_nodes: int, more_cores: int
) -> None:
    parameters = data.draw(parameters_of(mode))
    smaller, larger = ClusterSize(nodes, cores), ClusterSize(nodes + more_nodes, cores + more_cores)
    assert final(smaller, parameters).value <= final(larger, parameters).value


def test_a_ladder_without_rungs_is_no_step_of_interpolated() -> None:
    parameters = Interpolated(cores_to_replicas=(), nodes_to_replicas=((1, 1), (9, 5)))
    assert [step.step for step in steps_of(ClusterSize(5, 40), parameters).drivers] == ["interpolated/nodes"]


def test_two_rungs_with_one_threshold_are_ambiguous() -> None:
    values = Values(rungs={"nodesToReplicas": ((1, 1), (1, 2), (2, 3))})
    assert [flaw.message for flaw in ambiguous_rungs(values)] == [
        "several rungs of `nodesToReplicas` have the threshold 1"
    ]


@MODE
def test_a_mode_reports_problems_only_for_its_own_keys(mode: ModeDefinition[Any]) -> None:
    bad = Values(
        ratios=dict.fromkeys(mode.keys, -1.0),
        counts=dict.fromkeys(mode.keys, -1),
        rungs=dict.fromkeys(mode.keys, ((1, -1), (1, 2))),
    )
    flaws = [*mode.flaws(bad), *mode.strict_flaws(bad)]
    assert flaws
    assert {flaw.key for flaw in flaws} <= {None, *mode.keys}
