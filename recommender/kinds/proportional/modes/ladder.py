"""`ladder`: the replicas of the highest rung that is reached, as in cluster-proportional-autoscaler."""

from __future__ import annotations

from typing import Final

from recommender.kinds.proportional.formulas import by_rungs
from recommender.kinds.proportional.modes.mode_definition import (
    ClusterSize,
    ModeDefinition,
    ModeSteps,
    ParameterKind,
    Values,
)
from recommender.kinds.proportional.modes.rungs import LADDERS, ambiguous_rungs, missing_rungs, negative_rungs
from recommender.kinds.proportional.parameters import Ladder


def _parameters(values: Values) -> Ladder:
    return Ladder(
        cores_to_replicas=values.ladder("coresToReplicas"),
        nodes_to_replicas=values.ladder("nodesToReplicas"),
        include_unschedulable_nodes=values.flag("includeUnschedulableNodes"),
    )


def _steps(counts: ClusterSize, parameters: Ladder) -> ModeSteps:
    nodes = by_rungs("nodes", counts.nodes, parameters.nodes_to_replicas)
    cores = by_rungs("cores", counts.cores, parameters.cores_to_replicas)
    if parameters.nodes_to_replicas and parameters.cores_to_replicas:
        return ModeSteps((nodes, cores))
    return ModeSteps((cores if parameters.cores_to_replicas else nodes,))


LADDER: Final = ModeDefinition(
    name="ladder",
    parameters=Ladder,
    keys={**dict.fromkeys(LADDERS, ParameterKind.RUNGS), "includeUnschedulableNodes": ParameterKind.FLAG},
    parameters_of=_parameters,
    steps=_steps,
    flaws=negative_rungs,
    strict_flaws=lambda values: (*missing_rungs(values), *ambiguous_rungs(values)),
)
