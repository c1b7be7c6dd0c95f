"""Predictive scaling as a kind of recommendation."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from adapter.foundation.promql.tokens import tokens_of
from recommender.decisions.limits import range_limits
from recommender.decisions.loads.prediction import forecast_of
from recommender.decisions.policy_settings import Output
from recommender.decisions.texts.columns import GAP, columns
from recommender.kinds.kind import Needs, RecommendationKind, ScaleClaim, SeparateTargets
from recommender.kinds.predictive.calculate import calculate_predictive
from recommender.kinds.predictive.policy.memory import PolicyMemory
from recommender.kinds.predictive.predictive_settings import PredictiveSettings
from recommender.kinds.predictive.reading.predictive_reader import FOR_BACKTESTS, PREDICTIVE
from recommender.kinds.predictive.shown import PREDICTION_FAMILIES, prediction_keys, prediction_rows, prediction_samples
from recommender.kinds.predictive.suggested_limit import FIND_LIMIT, UNLIMITED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterState
    from adapter.foundation.documents.sections import Given
    from adapter.foundation.documents.shapes import ValueShape
    from adapter.foundation.documents.tree import DocumentProblem
    from recommender.decisions.calculation import Calculate
    from recommender.decisions.limits import Limit
    from recommender.decisions.record import Record, TargetReference
    from recommender.kinds.kind import Paint, Recommendation
    from recommender.outputs.metric_text import Samples

_SCALED_ONCE: Final = "remove the output scale from one of them: until then, neither scales them"


class PredictiveKind(RecommendationKind[PredictiveSettings]):
    """Replicas for a load that is forecast."""

    key = "predictive"
    doc = "Sizes by a forecast of the load."
    memory = PolicyMemory
    families = PREDICTION_FAMILIES
    page = "predictive/page.html"
    has_own_inputs = True

    def shape(self, *, for_backtest: bool) -> ValueShape:
        """Return the shape of the settings."""
        return FOR_BACKTESTS if for_backtest else PREDICTIVE

    def check(self, given: Given, outputs: frozenset[Output], *, for_backtest: bool) -> Iterator[DocumentProblem]:
        """Yield a problem for sizes that are written but not limited."""
        settings = given.get(self.key)
        if settings and not for_backtest and Output.SCALE in outputs and settings.max_replicas is None:
            yield given.problem("outputs", UNLIMITED, FIND_LIMIT)

    def limits(self, settings: PredictiveSettings) -> tuple[Limit, ...]:
        """Return `minReplicas` and `maxReplicas`."""
        return range_limits(settings.min_replicas, settings.max_replicas)

    def claims(self, settings: PredictiveSettings) -> Iterator[ScaleClaim]:
        """Yield a claim on the targets that series name; two entries conflict only if their queries are the same."""
        each = settings.for_each
        if each is not None:
            query = tuple(token.text for token in tokens_of(settings.load or ""))
            place = (each.kind, each.namespace_label, each.name_label, query)
            yield ScaleClaim(place, f"each {each.kind} of the same `load`", _SCALED_ONCE)

    def remarks(self, settings: PredictiveSettings) -> Iterator[str]:
        """Yield the assumed time zone in which days and weeks repeat, if none is configured."""
        if not settings.is_timezone_written:
            yield "days and weeks of its load are those of UTC, since it has no `timezone`"

    def for_object_namespace(
        self, settings: PredictiveSettings, namespace: str, narrow: Callable[[str], str]
    ) -> PredictiveSettings:
        """Return the settings with each query narrowed, and with `forEach` only for targets of the namespace."""
        connections, each = settings.connections, settings.for_each
        if connections is not None and connections.metric is not None:
            connections = replace(connections, metric=narrow(connections.metric))
        return replace(
            settings,
            load=None if settings.load is None else narrow(settings.load),
            freeze_unless=None if settings.freeze_unless is None else narrow(settings.freeze_unless),
            connections=connections,
            for_each=None if each is None else replace(each, only_namespace=namespace),
        )

    def needs(self, recommendation: Recommendation, cluster: ClusterState | None) -> Needs:  # noqa: ARG002 - as RecommendationKind has it
        """Return the load, and the query that freezes the size; `connections.metric` has a series for each pod."""
        settings: PredictiveSettings = recommendation.subject
        metric, each = settings.connections.metric if settings.connections else None, settings.for_each
        return Needs(
            queries=frozenset({settings.freeze_unless} if settings.freeze_unless else ()),
            load=settings.load or "",
            has_queries=any((settings.load, settings.freeze_unless, metric)),
            for_each=None
            if each is None
            else SeparateTargets(each.api_version, each.kind, each.max_targets, each.most_memory_shards),
        )

    def calculation(
        self,
        recommendation: Recommendation,
        others: Sequence[Recommendation],  # noqa: ARG002 - it follows no others
    ) -> Callable[[TargetReference | None], Calculate]:
        """Return the calculation of the recommendation, or, with `forEach`, of one of its targets."""
        policy, settings = recommendation.policy, recommendation.subject
        return partial(
            calculate_predictive,
            settings,
            policy.name,
            targets=policy.targets,
            stale_after_seconds=policy.stale_after_seconds,
            writes_sizes=Output.SCALE in policy.outputs and not policy.decides_once,
        )

    def samples(self, records: Iterable[Record]) -> Mapping[str, Samples]:
        """Return loads, forecasts and models."""
        return prediction_samples(records)

    def document(self, record: Record) -> Mapping[str, object]:
        """Return the forecast with its model."""
        return prediction_keys(forecast_of(record))

    def head_lines(self, record: Record, width: int | None, paint: Paint) -> Iterable[str]:  # noqa: ARG002 - as RecommendationKind has it
        """Yield the forecast with its model."""
        rows = list(prediction_rows(forecast_of(record)))
        return columns(rows, width, lambda _place, _column, text: text, indent=GAP) if rows else ()


KIND: Final = PredictiveKind()
"""The instance that `table` returns."""
