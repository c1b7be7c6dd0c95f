"""Determines whether a container's sizes differ enough from the wanted sizes to be worth a restart.

Sources: `nanny/nanny_lib.go` of addon-resizer in kubernetes/autoscaler, of the branch addon-resizer-release-1.8 for
`beyond_threshold` and of version 2 for `beyond_offsets`. Unlike in addon-resizer, a resource without a base is left
alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.objects.quantities import Quantity
    from recommender.kinds.proportional.nanny.estimators import Sizes

_ORDER: Final = ("cpu", "memory", "storage")


class ResizeDirection(StrEnum):
    """The direction of change of the first resource whose difference matters."""

    UP = "up"
    DOWN = "down"
    UNKNOWN = "unknown"
    """The container has no such request or limit yet. No delay applies."""


@dataclass(frozen=True, slots=True)
class CurrentSizes:
    """The requests and limits that a container has."""

    requests: Sizes
    limits: Sizes


@dataclass(frozen=True, slots=True)
class SizeChange:
    """The sizes of all resources to write, because one size differs too much."""

    sizes: Sizes
    direction: ResizeDirection
    reason: str
    """The request or limit that differs, and by how much."""


@dataclass(frozen=True, slots=True)
class Delays:
    """The least number of seconds from the start or the last change to the next change."""

    up_seconds: float
    down_seconds: float

    def forbid(self, direction: ResizeDirection, since_seconds: float) -> bool:
        """Return whether a change must wait."""
        least = {ResizeDirection.UP: self.up_seconds, ResizeDirection.DOWN: self.down_seconds}
        return since_seconds < least.get(direction, 0.0)


def beyond_threshold(current: CurrentSizes, wanted: Sizes, threshold_percent: int) -> SizeChange | None:
    """Return the wanted sizes if a current size differs from the wanted one by more than the threshold; else None.

    The ratio is truncated to whole percent, so that a size may exceed the threshold by up to one percent.
    """
    for resource in _sized_resources(wanted):
        for section, sizes in (("limit", current.limits), ("request", current.requests)):
            direction = _direction(sizes.get(resource), wanted[resource], threshold_percent)
            if direction is not None:
                return SizeChange(wanted, direction, _reason(section, resource, sizes.get(resource), wanted[resource]))
    return None


def beyond_offsets(
    current: CurrentSizes, accepted: tuple[Sizes, Sizes], recommended: tuple[Sizes, Sizes]
) -> SizeChange | None:
    """Return the nearer end of the recommended range if a current size is outside the accepted range; else None."""
    lowest, highest = accepted
    lower, upper = recommended
    for section, sizes in (("limit", current.limits), ("request", current.requests)):
        for resource in _sized_resources(lowest):
            size = sizes.get(resource)
            if size is None or size < lowest[resource]:
                direction = ResizeDirection.UNKNOWN if size is None else ResizeDirection.UP
                return SizeChange(lower, direction, _reason(section, resource, size, lower[resource]))
            if size > highest[resource] and not _is_stored_as(size, upper[resource]):
                return SizeChange(upper, ResizeDirection.DOWN, _reason(section, resource, size, upper[resource]))
    return None


def _sized_resources(sizes: Sizes) -> Iterator[str]:
    """Yield the names of the resources that have a size, in the order in which they are looked at."""
    return (resource for resource in _ORDER if resource in sizes)


def _direction(size: Quantity | None, wanted: Quantity, threshold_percent: int) -> ResizeDirection | None:
    if size is None:
        return ResizeDirection.UNKNOWN
    if _is_stored_as(size, wanted):
        return None
    if wanted.nanos == 0:
        return ResizeDirection.DOWN if size.nanos else None
    percent = size.nanos * 100 // wanted.nanos
    if percent < 100 - threshold_percent:
        return ResizeDirection.UP
    return ResizeDirection.DOWN if percent > 100 + threshold_percent else None


def _is_stored_as(size: Quantity, wanted: Quantity) -> bool:
    """Return whether a current size is what the API server stores for the wanted one: thousandths, rounded up."""
    return size.milli_value() == wanted.milli_value()


def _reason(section: str, resource: str, size: Quantity | None, wanted: Quantity) -> str:
    return f"the {section} of {resource} is {'missing' if size is None else size}, and {wanted} is wanted"
