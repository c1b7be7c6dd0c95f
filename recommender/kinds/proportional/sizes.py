"""Sizes of containers that grow with the cluster.

The formula is `calculate` in autoscaler_server.go of kubernetes-sigs/cluster-proportional-vertical-autoscaler.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from adapter.foundation.objects.quantities import Quantity, parse_quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.cluster.values.node_counts import NodeCounts
    from recommender.kinds.proportional.parameters import ResourceStep

ContainerResources = dict[str, dict[str, dict[str, str]]]
"""Quantities by container, by `requests` or `limits`, and by resource."""
_MOST_STEPS: Final = 2.0**53
"""The most steps that count; a number per step close to 0 could otherwise result in more."""


@dataclass(frozen=True, slots=True)
class ContainerSizes:
    """The details of a record with sizes of containers."""

    has_value: ClassVar[bool] = True
    by_container: ContainerResources


def sizes_of(
    counts: NodeCounts, resources: Mapping[str, Mapping[str, Mapping[str, ResourceStep]]], pods_and_services: int
) -> ContainerResources:
    """Return the sizes as quantities; they follow all nodes in `counts`, whether schedulable or not."""
    return {
        container: {
            section: {
                resource: str(size_of(counts.nodes, counts.cores, step, pods_and_services))
                for resource, step in steps.items()
            }
            for section, steps in sections.items()
        }
        for container, sections in resources.items()
    }


def size_of(nodes: int, cores: int, step: ResourceStep, pods_and_services: int = 0) -> Quantity:
    """Return base + step x ceil(count / per step) for the count that gives the largest size, at most max."""
    return max(
        _grown_size(nodes, step.nodes_per_step, step),
        _grown_size(cores, step.cores_per_step, step),
        _grown_size(pods_and_services, step.pods_and_services_per_step, step),
    )


def _grown_size(count: int, per_step: float, step: ResourceStep) -> Quantity:
    base = parse_quantity(step.base)
    added = parse_quantity(step.step or "0")
    steps = math.ceil(min(count / per_step, _MOST_STEPS)) if per_step > 0 else 0
    size = base + Quantity(added.nanos * steps, added.format)
    highest = parse_quantity(step.max or "0")
    return highest if 0 < highest.nanos < size.nanos else size
