"""Reads `predictive:` of a recommendation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.documents.tree import MappingNode, nearest, shortened
from adapter.objects.durations import format_go_duration
from recommender.predictive.reading.limits import read_override, read_schedules
from recommender.predictive.reading.load import read_connections, read_for_each, read_scale_down
from recommender.predictive.settings import ModelName, PredictiveSettings
from recommender.reading.fields import ValueReader

if TYPE_CHECKING:
    from adapter.documents.tree import DocumentProblem, Node

KEYS: Final = (
    "load",
    "loadPerReplica",
    "horizon",
    "hpaSyncPeriod",
    "history",
    "headroom",
    "minReplicas",
    "maxReplicas",
    "model",
    "quantile",
    "maxGrowth",
    "scaleDown",
    "overshoot",
    "forEach",
    "connections",
    "schedule",
    "override",
    "freezeUnless",
)
_TO_RUN: Final = {"load": "sum(connections)", "loadPerReplica": "1000", "horizon": "120s"}
_SHORTEST_SECONDS: Final = 1.0
_DAY_SECONDS: Final = 86_400.0
_LONGEST_SYNC_SECONDS: Final = 3600.0
_SHORTEST_HISTORY_SECONDS: Final = 600.0
_LONGEST_HISTORY_SECONDS: Final = 60 * _DAY_SECONDS
_PERCENT_LIMIT: Final = 1001
_LARGEST_REPLICAS: Final = 2**31 - 1
_NANO: Final = 10**9
_LARGEST_LOAD: Final = 10**15
_LARGEST_GROWTH: Final = 1000.0


def read_predictive(node: Node, problems: list[DocumentProblem]) -> PredictiveSettings | None:
    """Return the settings; None if something is wrong: all of it is added to the problems, in the order of the file.

    No key is required here: a backtest takes load and scale from its trace (`missing_for_running`). Problems that the
    YAML loader found inside the node (`problems_within`) are the caller's to report.
    """
    before = len(problems)
    fields = ValueReader(problems)
    mapping = fields.mapping(node, KEYS)
    if mapping is None:
        return None
    settings = _settings(mapping, fields)
    _check_combination(mapping, settings, fields)
    problems[before:] = sorted(problems[before:], key=lambda problem: (problem.line, problem.column))
    return settings if len(problems) == before else None


def missing_for_running(mapping: MappingNode) -> list[DocumentProblem]:
    """Return a problem for each key of `predictive` that `run` and `recommend` need, and that is missing."""
    fields = ValueReader([])
    fields.require(mapping, "predictive.", _TO_RUN, KEYS)
    return fields.problems


def _settings(mapping: MappingNode, fields: ValueReader) -> PredictiveSettings:
    default = PredictiveSettings()
    max_replicas = fields.count_within(mapping, "maxReplicas", 1, _LARGEST_REPLICAS)
    history = fields.duration(mapping.get("history"), _SHORTEST_HISTORY_SECONDS, _LONGEST_HISTORY_SECONDS)
    headroom = fields.percentage(mapping.get("headroom"), below=_PERCENT_LIMIT)
    hpa_sync = fields.duration(mapping.get("hpaSyncPeriod"), _SHORTEST_SECONDS, _LONGEST_SYNC_SECONDS)
    return PredictiveSettings(
        load=fields.query(mapping.get("load")),
        load_per_replica=_load_per_replica(mapping.get("loadPerReplica"), fields),
        horizon_seconds=fields.duration(mapping.get("horizon"), _SHORTEST_SECONDS, _DAY_SECONDS),
        hpa_sync_seconds=default.hpa_sync_seconds if hpa_sync is None else hpa_sync,
        history_seconds=default.history_seconds if history is None else history,
        headroom_ratio=default.headroom_ratio if headroom is None else headroom,
        min_replicas=fields.count_within(mapping, "minReplicas", 1, _LARGEST_REPLICAS) or default.min_replicas,
        is_min_replicas_written=mapping.get("minReplicas") is not None,
        max_replicas=max_replicas,
        model=_model(mapping.get("model"), fields),
        quantile=_quantile(mapping.get("quantile"), fields) or default.quantile,
        max_growth=_max_growth(mapping.get("maxGrowth"), fields),
        scale_down=read_scale_down(mapping.get("scaleDown"), fields),
        # 0% is off too.
        overshoot_ratio=fields.percentage(mapping.get("overshoot"), below=_PERCENT_LIMIT) or None,
        for_each=read_for_each(mapping.get("forEach"), fields),
        connections=read_connections(mapping.get("connections"), fields),
        schedules=read_schedules(mapping.get("schedule"), max_replicas, fields),
        override=read_override(mapping.get("override"), fields),
        freeze_unless=fields.query(mapping.get("freezeUnless")),
    )


def _check_combination(mapping: MappingNode, settings: PredictiveSettings, fields: ValueReader) -> None:
    """Add a problem for values that contradict each other, and for keys that would do nothing."""
    most, least = settings.max_replicas, settings.min_replicas
    node = mapping.get("maxReplicas")
    if node is not None and most is not None and most < least:
        fields.problem(node, f"`maxReplicas` is {most}, less than `minReplicas`, which is {least}", "raise it")
    horizon, history = settings.horizon_seconds, settings.history_seconds
    if horizon is not None and history < horizon:
        message = f"`history` is {format_go_duration(history)}, shorter than `horizon`, {format_go_duration(horizon)}"
        fields.problem(mapping.get("history") or mapping, message, "write several days, such as 14d")
    node = mapping.get("overshoot")
    if node is not None and mapping.get("connections") is None:
        message = "`overshoot` has no effect without `connections`, which state when a pod is full"
        fields.problem(node, message, "write connections: {limit: 25000}, or remove it")
    node = mapping.get("connections")
    metric = node.get("metric") if isinstance(node, MappingNode) else None
    if metric is not None and settings.for_each is not None:
        message = "`connections.metric` cannot be used with `forEach`, since its series do not name their targets"
        fields.problem(metric, message, "remove it, or write an entry with `targets`")


def _load_per_replica(node: Node | None, fields: ValueReader) -> float | None:
    amount = fields.quantity(node)
    if node is None or amount is None or 0 < amount.nanos <= _LARGEST_LOAD * _NANO:
        return None if amount is None else amount.nanos / _NANO
    if amount.nanos >= 0:
        fix = "write what one replica serves, above 0 and at most 1e15"
        fields.problem(node, f"`loadPerReplica` is {shortened(str(amount))}", fix)
    return None


def _model(node: Node | None, fields: ValueReader) -> ModelName:
    text = fields.text(node)
    if node is None or text is None or text in set(ModelName):
        return ModelName(text or ModelName.AUTO)
    meant = nearest(text, list(ModelName))
    fix = f"did you mean {meant}?" if meant else f"the models are {', '.join(ModelName)}"
    fields.problem(node, f"unknown model {shortened(text)!r}", fix)
    return ModelName.AUTO


def _quantile(node: Node | None, fields: ValueReader) -> float | None:
    quantile = fields.ratio(node)
    if node is not None and quantile is not None and not 0.5 < quantile < 1:
        fields.problem(node, f"`quantile` is {quantile:g}", "write a number between 0.5 and 1, such as 0.95")
    return quantile


def _max_growth(node: Node | None, fields: ValueReader) -> float | None:
    growth = fields.ratio(node)
    if node is not None and growth is not None and not 1 < growth <= _LARGEST_GROWTH:
        fields.problem(
            node, f"`maxGrowth` is {growth:g}", f"write a factor above 1, up to {_LARGEST_GROWTH:g}, such as 2.0"
        )
    return growth
