"""`linear`: one replica per number of nodes and per number of cores, as in cluster-proportional-autoscaler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from recommender.kinds.proportional.formulas import by_ratio, number_text
from recommender.kinds.proportional.modes.bounds import at_least_two, flaws_of_bounds, limits_of, min_of
from recommender.kinds.proportional.modes.mode_definition import (
    ClusterSize,
    Flaw,
    ModeDefinition,
    ModeSteps,
    ParameterKind,
    Values,
)
from recommender.kinds.proportional.parameters import Linear

_RATIOS: Final = ("coresPerReplica", "nodesPerReplica")


def _flaws(values: Values) -> Iterator[Flaw]:
    yield from flaws_of_bounds(values)
    if not any(values.ratio(key) for key in _RATIOS):
        yield Flaw(None, "neither `coresPerReplica` nor `nodesPerReplica` is larger than 0", "write at least one")
    for key in _RATIOS:
        if values.ratio(key) < 0:
            message = f"`{key}` is {number_text(values.ratio(key))}, which is negative"
            yield Flaw(key, message, "write a number larger than 0")


def _parameters(values: Values) -> Linear:
    return Linear(
        cores_per_replica=values.ratio("coresPerReplica"),
        nodes_per_replica=values.ratio("nodesPerReplica"),
        min=min_of(values),
        max=values.count("max"),
        prevent_single_point_failure=values.flag("preventSinglePointFailure"),
        include_unschedulable_nodes=values.flag("includeUnschedulableNodes"),
    )


def _steps(counts: ClusterSize, parameters: Linear) -> ModeSteps:
    drivers = (
        ("nodes", counts.nodes, parameters.nodes_per_replica),
        ("cores", counts.cores, parameters.cores_per_replica),
    )
    steps = tuple(by_ratio(name, count, ratio) for name, count, ratio in drivers if ratio)
    spread = at_least_two(counts.nodes) if parameters.prevent_single_point_failure else ()
    return ModeSteps(steps, (*limits_of(parameters.min, parameters.max), *spread))


LINEAR: Final = ModeDefinition(
    name="linear",
    parameters=Linear,
    keys={
        "coresPerReplica": ParameterKind.RATIO,
        "nodesPerReplica": ParameterKind.RATIO,
        "min": ParameterKind.COUNT,
        "max": ParameterKind.COUNT,
        "preventSinglePointFailure": ParameterKind.FLAG,
        "includeUnschedulableNodes": ParameterKind.FLAG,
    },
    parameters_of=_parameters,
    steps=_steps,
    flaws=_flaws,
)
