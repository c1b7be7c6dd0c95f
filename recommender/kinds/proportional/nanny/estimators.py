"""The sizes of addon-resizer: base + extra x the size of the cluster.

Sources: `nanny/estimator.go` of addon-resizer in kubernetes/autoscaler, of the branch addon-resizer-release-1.8 for
`linear_sizes` and `exponential_size`, and of version 2 for `offset_sizes`. Sums are exact here; version 2 of
addon-resizer adds a fraction of a byte to some.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from adapter.foundation.objects.quantities import Quantity

Sizes: TypeAlias = dict[str, Quantity]
"""Amount by resource, for requests and limits alike."""


@dataclass(frozen=True, slots=True)
class GrowingResource:
    """How one resource grows with the cluster."""

    name: str
    base: Quantity
    extra: Quantity
    """Extra amount for each node or container."""


def linear_sizes(cluster_size: int, resources: Sequence[GrowingResource]) -> Sizes:
    """Return the sizes for this number of nodes or containers."""
    return {each.name: each.base + Quantity(each.extra.nanos * cluster_size, each.extra.format) for each in resources}


def exponential_size(cluster_size: int, smallest: int) -> int:
    """Return `smallest`, multiplied by 1.5 until it is not below the size of the cluster.

    Each product is rounded down; `smallest` must be 2 or more, so that the products grow.
    """
    size = smallest
    while size < cluster_size:
        size = size * 3 // 2
    return size


def offset_sizes(nodes: int, offset_percent: int, resources: Sequence[GrowingResource]) -> tuple[Sizes, Sizes]:
    """Return the sizes for this percentage of fewer and of more nodes; the difference in nodes is rounded up."""
    difference = -(-nodes * offset_percent // 100)
    return linear_sizes(nodes - difference, resources), linear_sizes(nodes + difference, resources)
