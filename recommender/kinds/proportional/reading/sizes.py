"""The shape of `resources:`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.documents.scalars import QUANTITY, TEXTS_MAY_BE_EMPTY, Bounds, number
from adapter.foundation.documents.sections import Key, Section, mapping_of
from recommender.kinds.proportional.parameters import ResourceStep

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.documents.sections import Given
    from adapter.foundation.documents.tree import DocumentProblem
    from adapter.foundation.objects.quantities import Quantity

_PER_STEP: Final = ("coresPerStep", "nodesPerStep", "podsAndServicesPerStep")


def _check_step(given: Given) -> Iterator[DocumentProblem]:
    base, most = given.get("base"), given.get("max")
    if base is not None and most is not None and most < base:
        yield given.node.problem(f"`max` {most} is less than `base` {base}", "write at least `base`, or no `max`")
    if given.has("step") != any(map(given.has, _PER_STEP)):
        fix = "write `step` together with `coresPerStep`, `nodesPerStep` or `podsAndServicesPerStep`"
        yield given.node.problem("the size never grows, since only a part of how it grows is here", fix)


def _step(
    base: Quantity, most: Quantity | None = None, step: Quantity | None = None, **per_step: float
) -> ResourceStep:
    return ResourceStep(str(base), None if most is None else str(most), None if step is None else str(step), **per_step)


def _check_sections(given: Given) -> Iterator[DocumentProblem]:
    if not given.has("requests") and not given.has("limits"):
        yield given.node.problem("neither `requests` nor `limits` is here", "write at least one")


def _sections(**sections: dict[str, ResourceStep]) -> dict[str, dict[str, ResourceStep]]:
    return sections


_STEP: Final = Section(
    "resources",
    _step,
    (
        Key("base", QUANTITY, "Size in an empty cluster.", "10m"),
        Key("max", QUANTITY, "Largest size.", into="most"),
        Key("step", QUANTITY, "By how much it grows."),
        Key("coresPerStep", number(Bounds(0, above=True)), "Cores after which it grows."),
        Key("nodesPerStep", number(Bounds(0, above=True)), "Nodes after which it grows."),
        Key(
            "podsAndServicesPerStep",
            number(Bounds(0, above=True)),
            "Pods and Services of the cluster, together, after which it grows.",
        ),
    ),
    _check_step,
)
_BY_RESOURCE: Final = mapping_of("resources", TEXTS_MAY_BE_EMPTY, _STEP)
RESOURCES: Final = mapping_of(
    "resources",
    TEXTS_MAY_BE_EMPTY,
    Section(
        "resources",
        _sections,
        tuple(Key(name, _BY_RESOURCE, f"The {name}, by resource.") for name in ("requests", "limits")),
        _check_sections,
    ),
    ("`resources` is empty", "write the name of a container and its requests or limits"),
)
"""How sizes grow, by container, section and resource."""
