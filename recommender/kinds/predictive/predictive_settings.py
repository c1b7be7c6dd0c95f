"""The configuration of a predictive recommendation."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recommender.kinds.kind import Recommendation
from typing import Final

# Not from `history`: programs that only read a configuration do not load numpy.
_DAY_SECONDS: Final = 86_400.0
LONGEST_HISTORY_SECONDS: Final = 60 * _DAY_SECONDS
FOR_EACH_KINDS: Final = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "ReplicaSet": "apps/v1",
    "ReplicationController": "v1",
}
"""Kinds of the targets that `forEach` finds, with their API versions."""


class ModelName(StrEnum):
    """The models by their names in the configuration."""

    AUTO = "auto"
    REACTIVE = "reactive"
    HEADROOM = "headroom"
    LINEAR = "linear"
    POLYNOMIAL = "polynomial"
    SEASONAL = "seasonal"
    SEASONAL_HELD = "seasonal-held"
    HOLT_WINTERS = "holt-winters"
    STATE_SPACE = "state-space"
    QUANTILE = "quantile"
    BOOSTED = "boosted"
    CONFORMAL = "conformal"
    BOOSTED_CONFORMAL = "boosted-conformal"
    LARGEST_HOUR = "largest-hour"
    PERCENTILE = "percentile"
    TREND = "trend"


TREND_MODELS: Final = frozenset(
    {ModelName.LINEAR, ModelName.POLYNOMIAL, ModelName.TREND, ModelName.HOLT_WINTERS, ModelName.STATE_SPACE}
)
"""Models that extrapolate a trend."""
MOST_FITTED_TARGETS: Final = 24
"""The largest number of targets to which models with parameters for each series are fitted; if a recommendation has
more targets, models are tried on this many."""
TREND_GROWTH: Final = 2.0
"""Without `maxGrowth`, a model that extrapolates a trend forecasts at most this many times the current load."""


@dataclass(frozen=True, slots=True)
class ScaleDown:
    """How capacity is lowered."""

    decay_ratio: float | None = None
    """The largest share of the capacity that is removed in 10 s, whatever the poll interval or the step is; None means
    no limit."""
    window_seconds: float = 300.0
    """Capacity is at least the largest request within this time before now."""
    drain_seconds: float | None = None
    """The longest time that sessions last; capacity is lowered no faster than they end."""


@dataclass(frozen=True, slots=True)
class Connections:
    """Long-lived connections: only pods below their limit accept new ones."""

    limit: int
    """The number of connections at which a pod becomes not ready."""
    metric: str | None = None
    """PromQL with one series for each pod (label `pod`); None if pods are not considered one by one."""
    reconnect_drop_ratio: float = 0.3
    """A fall of the load by this share within a minute is a mass reconnect, not a fall in demand."""
    reconnect_hold_seconds: float = 120.0
    """How long capacity is held after a mass reconnect."""


TARGETS_A_SHARD = 400
"""The most targets whose memories share a ConfigMap, on average."""
_LEAST_MEMORY_SHARDS = 32


@dataclass(frozen=True, slots=True)
class ForEach:
    """Each series of `load` is a separate target."""

    namespace_label: str
    name_label: str
    kind: str = "Deployment"
    """The kind of the targets: one of `FOR_EACH_KINDS`."""
    max_targets: int = 10_000
    only_namespace: str = field(default="", repr=False)
    """The only namespace in which targets may be, whatever the series say; empty for any namespace."""

    @property
    def api_version(self) -> str:
        """The API version of `kind`."""
        return FOR_EACH_KINDS[self.kind]

    @property
    def most_memory_shards(self) -> int:
        """The number of ConfigMaps for the memories of the targets, a power of two.

        Lowering `max` keeps most of the memories. The chart computes the same number for the rights on these
        ConfigMaps.
        """
        shards = _LEAST_MEMORY_SHARDS
        while shards * TARGETS_A_SHARD < self.max_targets:
            shards *= 2
        return shards


@dataclass(frozen=True, slots=True)
class Schedule:
    """A lower bound at recurring times."""

    cron: str
    """Five fields as in crontab(5): minute, hour, day of the month, month, day of the week."""
    timezone: str
    """IANA name, such as `Europe/Berlin`."""
    duration_seconds: float
    min_replicas: int


@dataclass(frozen=True, slots=True)
class Override:
    """A size that somebody has set by hand for a while."""

    replicas: int
    until: float
    """Seconds since the Unix epoch."""


@dataclass(frozen=True, slots=True)
class PredictiveSettings:
    """The mapping `predictive` of a recommendation."""

    load: str | None = None
    """PromQL with one value, or, with `forEach`, one series for each target."""
    load_per_replica: float | None = None
    """The load that one replica serves; `run` and `recommend` need it."""
    horizon_seconds: float | None = None
    """Start-up time of a pod; `run` and `recommend` need it."""
    hpa_sync_seconds: float = 15.0
    """How often an HPA looks at its metrics: `--horizontal-pod-autoscaler-sync-period` of kube-controller-manager."""
    history_seconds: float = 14 * _DAY_SECONDS
    season_seconds: float = _DAY_SECONDS
    """The length of one cycle of the load, which models treat as a day."""
    headroom_ratio: float = 0.1
    min_replicas: int = 1
    is_min_replicas_written: bool = field(default=False, compare=False)
    """Whether the file sets `minReplicas`, since backtests have another default."""
    max_replicas: int | None = None
    model: ModelName = ModelName.AUTO
    quantile: float = 0.95
    max_growth: float | None = None
    """The largest ratio of a forecast to the current load; None means 2.0 for models that extrapolate a trend, and no
    cap for all other models."""
    max_over_history: float = 1.5
    """No forecast is more than this many times the largest load of the history."""
    budget_ratio: float | None = None
    """The share by which replica-hours of `auto` may exceed those that the load fills; None if the quantile decides."""
    timezone: str = "UTC"
    """IANA name of the time zone in which days and weeks repeat."""
    holidays: tuple[str, ...] = ()
    """Countries, or their parts, whose public holidays count as Sundays, such as `DE` or `DE-BY`."""
    is_timezone_written: bool = field(default=False, compare=False)
    """Whether the file sets `timezone`; if it does not, the user is informed of the default."""
    scale_down: ScaleDown | None = None
    overshoot_ratio: float | None = None
    """The ratio by which the size is raised while pods are full; None if off."""
    for_each: ForEach | None = None
    connections: Connections | None = None
    schedules: tuple[Schedule, ...] = ()
    override: Override | None = None
    freeze_unless: str | None = None
    """PromQL; while its value is missing or 0, the last size is kept."""

    @property
    def stretch(self) -> float:
        """The factor by which times are multiplied so that a season takes a day."""
        return _DAY_SECONDS / self.season_seconds

    def growth_limit(self, model: str) -> float | None:
        """Return how many times the current load a prediction may be while this model leads; None without a limit.

        Models that `auto` mixes are limited individually.
        """
        return self.max_growth if self.model is ModelName.AUTO else configured_growth(model, self.max_growth)


def configured_growth(model: str, max_growth: float | None) -> float | None:
    """Return the limit of a configured model's prediction, as a multiple of the current load; None without one."""
    default = TREND_GROWTH if model in TREND_MODELS else None
    return default if max_growth is None else max_growth


def predictive_settings(recommendations: Iterable[Recommendation]) -> dict[str, PredictiveSettings]:
    """Return the settings of predictive recommendations by name."""
    return {each.policy.name: each.subject for each in recommendations if isinstance(each.subject, PredictiveSettings)}
