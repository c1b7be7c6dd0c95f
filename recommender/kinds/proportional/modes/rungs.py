"""The modes with rungs.

`ladder` is the replicas of the highest rung that is reached, as in cluster-proportional-autoscaler; `interpolated` is
straight lines between the rungs, rounded up.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from recommender.kinds.proportional.formulas import between_rungs, by_rungs
from recommender.kinds.proportional.modes.bounds import flaws_of_bounds, limits_of, min_of
from recommender.kinds.proportional.modes.mode_definition import (
    ClusterSize,
    Flaw,
    ModeDefinition,
    ModeSteps,
    ParameterKind,
    Values,
)
from recommender.kinds.proportional.parameters import Interpolated, Ladder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recommender.kinds.proportional.parameters import Rungs

LADDERS: Final = ("coresToReplicas", "nodesToReplicas")
"""The keys of modes under which there are rungs, in the order in which they are checked."""


def negative_rungs(values: Values) -> Iterator[Flaw]:
    """Yield a flaw for each rung with a negative number."""
    for key in LADDERS:
        yield from negative(key, values.rungs.get(key, ()))


def ambiguous_rungs(values: Values) -> Iterator[Flaw]:
    """Yield a flaw for each threshold that several rungs of one ladder have."""
    for key in LADDERS:
        yield from ambiguous(key, values.rungs.get(key, ()))


def missing_rungs(values: Values) -> Iterator[Flaw]:
    """Yield a flaw if there is no rung at all."""
    if not any(values.rungs.get(key) for key in LADDERS):
        fix = "write at least one rung, such as nodesToReplicas: [[1, 1]]"
        yield Flaw(None, "neither `coresToReplicas` nor `nodesToReplicas` has a rung", fix)


def negative(key: str, rungs: Rungs) -> Iterator[Flaw]:
    """Yield a flaw for each rung of one ladder with a negative number."""
    for rung in rungs:
        if min(rung) < 0:
            yield Flaw(key, f"the rung {list(rung)} of `{key}` has a negative number", "write 0 or more")


def ambiguous(key: str, rungs: Rungs) -> Iterator[Flaw]:
    """Yield a flaw for each threshold that several rungs of one ladder have."""
    times = Counter(threshold for threshold, _ in rungs)
    for threshold in (threshold for threshold, count in times.items() if count > 1):
        yield Flaw(key, f"several rungs of `{key}` have the threshold {threshold}", "keep one of them")


def _ladder_parameters(values: Values) -> Ladder:
    return Ladder(
        cores_to_replicas=values.ladder("coresToReplicas"),
        nodes_to_replicas=values.ladder("nodesToReplicas"),
        include_unschedulable_nodes=values.flag("includeUnschedulableNodes"),
    )


def _ladder_steps(counts: ClusterSize, parameters: Ladder) -> ModeSteps:
    nodes = by_rungs("nodes", counts.nodes, parameters.nodes_to_replicas)
    cores = by_rungs("cores", counts.cores, parameters.cores_to_replicas)
    if parameters.nodes_to_replicas and parameters.cores_to_replicas:
        return ModeSteps((nodes, cores))
    return ModeSteps((cores if parameters.cores_to_replicas else nodes,))


LADDER: Final = ModeDefinition(
    name="ladder",
    parameters=Ladder,
    keys={**dict.fromkeys(LADDERS, ParameterKind.RUNGS), "includeUnschedulableNodes": ParameterKind.FLAG},
    parameters_of=_ladder_parameters,
    steps=_ladder_steps,
    flaws=negative_rungs,
    strict_flaws=lambda values: (*missing_rungs(values), *ambiguous_rungs(values)),
)


def _interpolated_flaws(values: Values) -> Iterator[Flaw]:
    yield from flaws_of_bounds(values)
    yield from missing_rungs(values)
    yield from negative_rungs(values)
    yield from ambiguous_rungs(values)


def _interpolated_parameters(values: Values) -> Interpolated:
    return Interpolated(
        cores_to_replicas=values.ladder("coresToReplicas"),
        nodes_to_replicas=values.ladder("nodesToReplicas"),
        min=min_of(values),
        max=values.count("max"),
        include_unschedulable_nodes=values.flag("includeUnschedulableNodes"),
    )


def _interpolated_steps(counts: ClusterSize, parameters: Interpolated) -> ModeSteps:
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
    parameters_of=_interpolated_parameters,
    steps=_interpolated_steps,
    flaws=_interpolated_flaws,
)
