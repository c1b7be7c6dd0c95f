"""`interpolated`: straight lines between the rungs of a ladder, rounded up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from recommender.kinds.proportional.formulas import between_rungs
from recommender.kinds.proportional.modes.bounds import flaws_of_bounds, limits_of, min_of
from recommender.kinds.proportional.modes.mode_definition import (
    ClusterSize,
    Flaw,
    ModeDefinition,
    ModeSteps,
    ParameterKind,
    Values,
)
from recommender.kinds.proportional.modes.rungs import LADDERS, ambiguous_rungs, missing_rungs, negative_rungs
from recommender.kinds.proportional.parameters import Interpolated


def _flaws(values: Values) -> Iterator[Flaw]:
    yield from flaws_of_bounds(values)
    yield from missing_rungs(values)
    yield from negative_rungs(values)
    yield from ambiguous_rungs(values)


def _parameters(values: Values) -> Interpolated:
    return Interpolated(
        cores_to_replicas=values.ladder("coresToReplicas"),
        nodes_to_replicas=values.ladder("nodesToReplicas"),
        min=min_of(values),
        max=values.count("max"),
        include_unschedulable_nodes=values.flag("includeUnschedulableNodes"),
    )


def _steps(counts: ClusterSize, parameters: Interpolated) -> ModeSteps:
    drivers = (
        ("nodes", counts.nodes, parameters.nodes_to_replicas),
        ("cores", counts.cores, parameters.cores_to_replicas),
    )
    steps = tuple(between_rungs(name, count, rungs) for name, count, rungs in drivers if rungs)
    return ModeSteps(steps, limits_of(parameters.min, parameters.max))


INTERPOLATED: Final = ModeDefinition(
    name="interpolated",
    parameters=Interpolated,
    keys={
        **dict.fromkeys(LADDERS, ParameterKind.RUNGS),
        "min": ParameterKind.COUNT,
        "max": ParameterKind.COUNT,
        "includeUnschedulableNodes": ParameterKind.FLAG,
    },
    parameters_of=_parameters,
    steps=_steps,
    flaws=_flaws,
)
