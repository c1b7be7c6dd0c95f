"""The shapes of `limits` and `maxUnready`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from adapter.foundation.documents.scalars import QUANTITY, Bounds, checked, percentage, whole
from adapter.foundation.documents.sections import Key, Section, mapping_of
from adapter.foundation.documents.shapes import OneOf, WrongValueError
from adapter.foundation.documents.tree import MappingNode, ScalarNode
from recommender.kinds.cluster_size.model.size_settings import CORES, MEMORY, SizeLimits, Unready

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.objects.quantities import Quantity

_LARGEST_NODES: Final = 10_000_000
_NANO: Final = 10**9
_COUNT: Final = whole(0, _LARGEST_NODES)


def _total(unit: str, amount: Quantity) -> int:
    if amount.nanos % _NANO:
        raise WrongValueError(f"{amount} is not a whole number of {unit}", f"write whole {unit}")
    return amount.nanos // _NANO


def _range(key: str, least: int = 0, most: int | None = None) -> tuple[int, int | None]:
    if most is not None and most < least:
        raise WrongValueError(f"`limits.{key}` has a `max` that is less than its `min`", "raise it")
    return least, most


def _limits(
    cores: tuple[int, int | None] = (0, None),
    memory: tuple[int, int | None] = (0, None),
    max_nodes: int | None = None,
    gpus: Mapping[str, int] | None = None,
) -> SizeLimits:
    return SizeLimits(max_nodes, *cores, *memory, gpus or {})


def _total_field(key: str, unit: str) -> Key:
    """Return the key of a total: `cores: 320` is the largest total."""
    total = QUANTITY.then(partial(_total, unit))
    limits = Section(
        f"limits.{key}",
        partial(_range, key),
        (Key("min", total, f"Fewest {unit}.", into="least"), Key("max", total, f"Most {unit}.", into="most")),
    )
    either = OneOf({ScalarNode: total.then(lambda most: (0, most)), MappingNode: limits})
    return Key(key, either, f"Most {unit} of all nodes, or `min` and `max`.")


_EXTENDED: Final = checked(
    "an extended resource",
    lambda name: "/" not in name or name in {CORES, MEMORY},
    "write the name of an extended resource, such as nvidia.com/gpu: 16",
)
LIMITS: Final = Section(
    "limits",
    _limits,
    (
        Key("nodes", whole(1, _LARGEST_NODES), "Most nodes.", into="max_nodes"),
        _total_field("cores", "cores"),
        _total_field("memory", "bytes"),
        Key("gpus", mapping_of("limits.gpus", _EXTENDED, _COUNT), "Most of an extended resource, by its name."),
    ),
)
UNREADY: Final = Section(
    "maxUnready",
    Unready,
    (
        Key("ratio", percentage(Bounds(0, 100)), "Share of nodes that may be not ready."),
        Key("count", _COUNT, "Nodes that may be not ready however few there are."),
    ),
)
"""The cluster counts as unhealthy when the unready nodes exceed both limits."""
