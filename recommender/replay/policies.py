"""The policies that are compared: the configured one, and the ones that differ from it in one setting. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.durations import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings

CONFIGURED: Final = "configured"
_THRESHOLDS: Final = (0.5, 0.65, 0.8)
_UNNEEDED_SECONDS: Final = (300.0, 600.0, 1800.0)
_EXPANDERS: Final = ("least-waste", "price", "most-pods")


@dataclass(frozen=True, slots=True)
class ReplayPolicy:
    """Settings of cluster sizes, under a name that says what differs from the configured ones."""

    name: str
    settings: ClusterSizeSettings


def policies_of(settings: ClusterSizeSettings, groups: int, *, has_prices: bool) -> tuple[ReplayPolicy, ...]:
    """Return the configured policy first, and then each that differs in one setting, without repetitions."""
    return (ReplayPolicy(CONFIGURED, settings), *_variations(settings, groups, has_prices=has_prices))


def _variations(settings: ClusterSizeSettings, groups: int, *, has_prices: bool) -> Iterator[ReplayPolicy]:
    for name in _EXPANDERS if groups > 1 else ():
        if settings.expanders[0] != name and (name != "price" or has_prices):
            yield ReplayPolicy(f"expander: {name}", replace(settings, expanders=(name,)))
    down = settings.scale_down
    if not down.enabled:
        return
    for ratio in _THRESHOLDS:
        if ratio != down.utilization_threshold_ratio:
            changed = replace(down, utilization_threshold_ratio=ratio)
            yield ReplayPolicy(f"utilizationThreshold: {100 * ratio:.0f}%", replace(settings, scale_down=changed))
    for seconds in _UNNEEDED_SECONDS:
        if seconds != down.unneeded_seconds:
            changed = replace(down, unneeded_seconds=seconds)
            yield ReplayPolicy(f"unneededTime: {format_duration(seconds)}", replace(settings, scale_down=changed))
    if settings.headroom_ratio or settings.schedules:
        yield ReplayPolicy("headroom: 0%", replace(settings, headroom_ratio=0.0, schedules=()))
