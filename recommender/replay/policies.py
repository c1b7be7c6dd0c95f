"""The policies that are compared: the configured one, and the ones that differ from it in one setting. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.durations import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.replay.forecasts.workload_forecasts import WorkloadForecasts
    from recommender.replay.spot import SpotMarket

CONFIGURED: Final = "configured"
FORECASTS: Final = "forecasts"
_THRESHOLDS: Final = (0.5, 0.65, 0.8)
_UNNEEDED_SECONDS: Final = (300.0, 600.0, 1800.0)
_EXPANDERS: Final = ("least-waste", "price", "most-pods")


@dataclass(frozen=True, slots=True)
class ReplayPolicy:
    """Settings for the size of a cluster, under a name that states how they differ from the configured ones."""

    name: str
    settings: ClusterSizeSettings
    forecasts: WorkloadForecasts | None = None
    """The forecasts of pods; None if no pods are expected in advance."""
    market: SpotMarket | None = None
    """How spot machines are interrupted; None if they never are."""
    closed: frozenset[str] = frozenset()
    """Groups that have no nodes with this policy."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """The assumptions beyond the recording."""

    forecasts: WorkloadForecasts | None = None
    """The forecasts; None if there is no workload whose pods could be forecast."""
    market: SpotMarket | None = None
    """The spot market; None if nothing is stated about spot machines."""


NOTHING_ASSUMED: Final = Outlook()


def policies_of(
    settings: ClusterSizeSettings, groups: int, *, has_prices: bool, outlook: Outlook = NOTHING_ASSUMED
) -> tuple[ReplayPolicy, ...]:
    """Return the configured policy, followed by each policy that differs from it in one setting, without repetitions.

    Configured forecasts are used in all policies except the one that leaves them out.
    """
    configured = ReplayPolicy(CONFIGURED, settings, market=outlook.market)
    forecast = replace(configured, forecasts=outlook.forecasts)
    if settings.forecasts and outlook.forecasts is not None:
        current, other = forecast, replace(configured, name=f"{FORECASTS}: none")
    else:
        current, other = configured, replace(forecast, name=f"{FORECASTS}: pod counts")
    found = [current]
    found += [
        replace(current, name=name, settings=changed)
        for name, changed in _variations(settings, groups, has_prices=has_prices)
    ]
    if outlook.forecasts is not None:
        found.append(other)
    if outlook.market is not None and len(outlook.market.interruptions) < groups:
        found.append(replace(current, name="spot: none", closed=frozenset(outlook.market.interruptions)))
    return tuple(found)


def _variations(
    settings: ClusterSizeSettings, groups: int, *, has_prices: bool
) -> Iterator[tuple[str, ClusterSizeSettings]]:
    for name in _EXPANDERS if groups > 1 else ():
        if settings.expanders[0] != name and (name != "price" or has_prices):
            yield f"expander: {name}", replace(settings, expanders=(name,))
    down = settings.scale_down
    if not down.enabled:
        return
    for ratio in _THRESHOLDS:
        if ratio != down.utilization_threshold_ratio:
            changed = replace(down, utilization_threshold_ratio=ratio)
            yield f"utilizationThreshold: {100 * ratio:.0f}%", replace(settings, scale_down=changed)
    for seconds in _UNNEEDED_SECONDS:
        if seconds != down.unneeded_seconds:
            changed = replace(down, unneeded_seconds=seconds)
            yield f"unneededTime: {format_duration(seconds)}", replace(settings, scale_down=changed)
    if settings.headroom_ratio or settings.schedules:
        yield "headroom: 0%", replace(settings, headroom_ratio=0.0, schedules=())
