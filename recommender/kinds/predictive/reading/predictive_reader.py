"""The shape of a recommendation's `predictive:`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.documents.scalars import QUANTITY, QUERY, Bounds, duration, number, one_of, percentage
from adapter.foundation.documents.sections import Key, Section
from adapter.foundation.documents.shapes import OutOfRangeError
from adapter.foundation.documents.tree import SequenceNode
from adapter.foundation.objects.durations import format_duration
from recommender.kinds.predictive.predictive_settings import (
    LONGEST_HISTORY_SECONDS,
    MOST_FITTED_TARGETS,
    ModelName,
    PredictiveSettings,
)
from recommender.kinds.predictive.reading.predictive_sections import (
    CONNECTIONS,
    FOR_EACH,
    HOLIDAYS,
    OVERRIDE,
    REPLICAS,
    SCALE_DOWN,
    SCHEDULES,
)
from recommender.schedules.values import TIMEZONE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.documents.sections import Given
    from adapter.foundation.documents.tree import DocumentProblem
    from adapter.foundation.objects.quantities import Quantity

_DAY_SECONDS: Final = 86_400.0
_FITTED_ALONE: Final = frozenset({ModelName.HOLT_WINTERS, ModelName.STATE_SPACE})
_NANO: Final = 10**9
_LARGEST_LOAD: Final = 10**15
_PERCENT: Final = percentage(Bounds(0, 1000))


def _load_per_replica(amount: Quantity) -> float:
    if not 0 < amount.nanos <= _LARGEST_LOAD * _NANO:
        raise OutOfRangeError("write what one replica serves, above 0 and at most 1e15")
    return amount.nanos / _NANO


def _check(given: Given) -> Iterator[DocumentProblem]:
    """Yield a problem for values that contradict each other, and for keys that would do nothing."""
    most, least = given.get("maxReplicas"), given.get("minReplicas") or PredictiveSettings().min_replicas
    if most is not None and most < least:
        message = f"`maxReplicas` is {most}, less than `minReplicas`, which is {least}"
        yield given.problem("maxReplicas", message, "raise it")
    horizon, history = given.get("horizon"), given.get("history") or PredictiveSettings().history_seconds
    if horizon is not None and history < horizon:
        message = f"`history` is {format_duration(history)}, shorter than `horizon`, {format_duration(horizon)}"
        yield given.problem("history", message, "write several days, such as 14d")
    model, each = given.get("model") or ModelName.AUTO, given.get("forEach")
    if given.has("budget") and model is not ModelName.AUTO:
        message = f"`budget` cannot be combined with `model: {model}`, which costs what it asks for"
        yield given.problem("budget", message, "write `model: auto`, or delete `budget`")
    if each is not None and model in _FITTED_ALONE and each.max_targets > MOST_FITTED_TARGETS:
        message = f"`model: {model}` is fitted to each target separately, to {MOST_FITTED_TARGETS} at most"
        fix = f"write `forEach.max: {MOST_FITTED_TARGETS}` or less, or another model, such as auto"
        yield given.problem("model", message, fix)
    if each is not None and each.max_targets > MOST_FITTED_TARGETS and given.has("season"):
        message = f"`season` is for entries of {MOST_FITTED_TARGETS} targets at most"
        yield given.problem("season", message, f"write `forEach.max: {MOST_FITTED_TARGETS}` or less, or remove it")
    is_on = given.get("overshoot") or not given.has("connections")
    if given.has("overshoot") and is_on and not given.has("connections.metric"):
        message = "`overshoot` has no effect without `connections.metric`, which shows when a pod is full"
        fix = "write connections: {limit: 25000, metric: sum by (pod) (connections)}, or remove it"
        yield given.problem("overshoot", message, fix)
    if given.has("connections.metric") and given.get("forEach") is not None:
        message = "`connections.metric` cannot be used with `forEach`, since its series do not name their targets"
        yield given.problem("connections.metric", message, "remove it, or write an entry with `targets`")
    yield from _check_holidays(given)
    schedules = given.at("schedule")
    for node, schedule in zip(
        schedules.items if isinstance(schedules, SequenceNode) else (), given.get("schedule") or (), strict=False
    ):
        if most is not None and schedule.min_replicas > most:
            message = f"`schedule` asks for {schedule.min_replicas} replicas, but `maxReplicas` is {most}"
            yield node.problem(message, "lower one, or raise the other")


def _check_holidays(given: Given) -> Iterator[DocumentProblem]:
    """Yield a problem for `holidays` if the load's season is not a day, so that it has no days of the week."""
    season = given.get("season") or _DAY_SECONDS
    if given.has("holidays") and season != _DAY_SECONDS:
        message = f"`holidays` has no effect with `season: {format_duration(season)}`, which knows no days of the week"
        yield given.problem("holidays", message, "remove one of them")


def _settings(overshoot_ratio: float = 0.0, **given: Any) -> PredictiveSettings:  # noqa: ANN401 - those of PredictiveSettings
    # An overshoot of 0% is off too.
    settings = PredictiveSettings(overshoot_ratio=overshoot_ratio or None, **given)
    return replace(
        settings,
        schedules=tuple(replace(each, timezone=each.timezone or settings.timezone) for each in settings.schedules),
        is_min_replicas_written="min_replicas" in given,
        is_timezone_written="timezone" in given,
    )


PREDICTIVE: Final = Section(
    "predictive",
    _settings,
    (
        Key("load", QUERY, "PromQL of the load: one value, or one series a target with `forEach`.", "sum(connections)"),
        Key("loadPerReplica", QUANTITY.then(_load_per_replica), "Load that one replica serves.", "1000"),
        Key("horizon", duration(1, _DAY_SECONDS), "Start-up time of a pod.", "120s", into="horizon_seconds"),
        Key("hpaSyncPeriod", duration(1, 3600), "How often an HPA looks at its metrics.", into="hpa_sync_seconds"),
        Key(
            "history",
            duration(600, LONGEST_HISTORY_SECONDS),
            "How much history of the load is used.",
            into="history_seconds",
        ),
        Key("season", duration(10, 7 * _DAY_SECONDS), "How long a cycle of the load takes.", into="season_seconds"),
        Key("headroom", _PERCENT, "Capacity above the load.", into="headroom_ratio"),
        Key("minReplicas", REPLICAS, "Minimum number of replicas."),
        Key("maxReplicas", REPLICAS, "Maximum replicas; the output scale needs it."),
        Key("model", one_of(ModelName, "a model").then(ModelName), "How the load is forecast."),
        Key("quantile", number(Bounds(0.5, 1, above=True, below=True)), "Quantile of forecasts that is served."),
        Key("maxGrowth", number(Bounds(1, 1000, above=True)), "Largest forecast, as a multiple of the current load."),
        Key(
            "maxOverHistory",
            number(Bounds(1, 1000)),
            "Largest forecast, as a multiple of the largest load of the history.",
        ),
        Key(
            "budget",
            _PERCENT,
            "Share of replica-hours above the load that the model auto may cost.",
            into="budget_ratio",
        ),
        Key("timezone", TIMEZONE, "IANA name: by whose clocks days and weeks of the load repeat."),
        Key("holidays", HOLIDAYS, "Countries or parts of them whose holidays the load may keep, such as DE-BY."),
        Key("scaleDown", SCALE_DOWN, "How capacity goes down."),
        Key("overshoot", _PERCENT, "Added while pods are full.", into="overshoot_ratio"),
        Key("forEach", FOR_EACH, "Makes each series of `load` a target of its own."),
        Key("connections", CONNECTIONS, "Long-lived connections: when a pod is full."),
        Key("schedule", SCHEDULES, "Lower bounds at recurring times.", into="schedules"),
        Key("override", OVERRIDE, "A size that is set by hand for a while."),
        Key("freezeUnless", QUERY, "PromQL: while it has no value other than 0, the last value is held."),
    ),
    _check,
    # Those of proportional entries. `max` is also a key of `forEach`, with another meaning.
    hints={"min": "the fewest replicas are `minReplicas`", "max": "the most replicas are `maxReplicas`"},
    defaults=PredictiveSettings,
)
FOR_BACKTESTS: Final = replace(PREDICTIVE, keys=tuple(replace(each, example="") for each in PREDICTIVE.keys))
"""A backtest takes load and scale from its trace, so it requires no key."""
