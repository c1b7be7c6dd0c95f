"""Sizes of containers as Prometheus metrics, in cores and bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.quantities import parse_quantity
from adapter.foundation.web.metric_text import label
from recommender.outputs.metric_text import of_recommendation, of_target

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from recommender.decisions.record import Record
    from recommender.kinds.proportional.sizes import ContainerResources
    from recommender.outputs.metric_text import Samples

_NANOS_PER_UNIT: Final = 10**9
RESOURCE_FAMILIES: Final = {
    "tidewatch_recommended_resources": "Size of a container by resource, in cores and bytes: bound=target is its "
    "request, or its limit where only that is sized; bound=upper is its limit beside a request.",
}
"""Help by name."""


def resource_samples(sized: Iterable[tuple[Record, ContainerResources]]) -> dict[str, Samples]:
    """Return the samples of each family; `sized` are records that have a valid value, with their sizes."""
    samples: Samples = {}
    for record, resources in sized:
        targets = [of_target(outcome.target) for outcome in record.targets] or [of_target(None)]
        for container, kinds in resources.items():
            for resource, bound, quantity in _bounds(kinds):
                size = parse_quantity(quantity).nanos / _NANOS_PER_UNIT
                about = f"{label('bound', bound)},{label('container', container)},{of_recommendation(record)}"
                for target in targets:
                    samples.setdefault(f"{about},{label('resource', resource)},{target}", size)
    return {"tidewatch_recommended_resources": samples}


def _bounds(kinds: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, str, str]]:
    """Yield resource, bound and quantity."""
    requests, limits = kinds.get("requests", {}), kinds.get("limits", {})
    for resource, quantity in requests.items():
        yield resource, "target", quantity
    for resource, quantity in limits.items():
        yield resource, "upper" if resource in requests else "target", quantity
