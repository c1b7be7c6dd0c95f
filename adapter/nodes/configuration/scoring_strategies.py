"""The shapes of the scoring strategies of kube-scheduler's NodeResourcesFit."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.documents.scalars import RESOURCE_NAME, one_of, whole
from adapter.foundation.documents.sections import Given, Key, Section
from adapter.foundation.documents.shapes import ListOf, WrongValueError
from adapter.nodes.model.scheduling_settings import (
    MostAllocatedArgs,
    PolicyArgs,
    RequestedToCapacityRatioArgs,
    ResourceWeight,
    ShapePoint,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from adapter.foundation.documents.tree import DocumentProblem


def _last_weights(weights: list[ResourceWeight]) -> tuple[ResourceWeight, ...]:
    return tuple({weight.name: weight for weight in weights}.values())


def _require_ascending(points: list[ShapePoint]) -> tuple[ShapePoint, ...]:
    for before, point in pairwise(points):
        if point.utilization <= before.utilization:
            message = f"utilization {point.utilization} is not above that of the point before"
            raise WrongValueError(message, "write the points in the order of their utilization")
    return tuple(points)


_WEIGHTS: Final = ListOf(
    Section(
        "resources",
        ResourceWeight,
        (
            Key("name", RESOURCE_NAME, "Name of the resource.", "nvidia.com/gpu"),
            Key("weight", whole(1, 100, quoted=True), "How much the resource counts in the mean."),
        ),
    ),
    _last_weights,
    ("no resource is listed", "write a list such as - {name: cpu, weight: 1}"),
)
_RESOURCES: Final = Key("resources", _WEIGHTS, "Resources whose requests are added up.")
_RATIO_FUNCTION: Final = Section(
    "requestedToCapacityRatio",
    lambda shape: shape,
    (
        Key(
            "shape",
            ListOf(
                Section(
                    "shape",
                    ShapePoint,
                    (
                        Key("utilization", whole(0, 100, quoted=True), "Requested percent.", "0"),
                        Key("score", whole(0, 10, quoted=True), "Score there.", "10"),
                    ),
                ),
                _require_ascending,
                ("the shape has no point", "write points such as {utilization: 0, score: 0}"),
            ),
            "Points of the function from utilization to score.",
            "[{utilization: 0, score: 0}, …]",
        ),
    ),
)


def _strategy(make: Callable[..., PolicyArgs], type_name: str, *keys: Key) -> Section[PolicyArgs]:
    """Return the shape of a scoring strategy, which may be nested under `scoringStrategy`, as in kube-scheduler."""

    def written_either_way(strategy: PolicyArgs | None = None, **arguments: Any) -> PolicyArgs:  # noqa: ANN401 - likewise
        return strategy or make(**arguments)

    def check(given: Given) -> Iterator[DocumentProblem]:
        for each in keys if given.has("scoringStrategy") else ():
            if given.has(each.key):
                message = f"`{each.key}` cannot be combined with `scoringStrategy`"
                yield given.problem(each.key, message, "write it below scoringStrategy")

    kind = Key("type", one_of((type_name,), "the strategy of this policy"), "Name in kube-scheduler.", into="")
    below = Section("scoringStrategy", make, (kind, *keys))
    either = Key("scoringStrategy", below, "The arguments as kube-scheduler's profile has them.", into="strategy")
    return Section("args", written_either_way, (*keys, either), check)


MOST_ALLOCATED: Final = _strategy(MostAllocatedArgs, "MostAllocated", _RESOURCES)
REQUESTED_TO_CAPACITY_RATIO: Final = _strategy(
    RequestedToCapacityRatioArgs,
    "RequestedToCapacityRatio",
    _RESOURCES,
    Key("requestedToCapacityRatio", _RATIO_FUNCTION, "The function from utilization to score.", into="shape"),
)
