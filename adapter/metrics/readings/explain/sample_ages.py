"""Determines the age of the samples behind values, since Prometheus evaluates with whatever samples came last."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from adapter.foundation.promql.quoting import is_metric_name, label_in_query
from adapter.foundation.sources.prometheus.errors import PrometheusError
from adapter.foundation.time.timestamps import is_moment
from adapter.metrics.readings.explain.explanation import ExplainedValue, Question
from adapter.metrics.rulebook.templates.matchers import (
    RenderError,
    names_matcher,
    presence_matcher,
    selector_matchers,
    value_matcher,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.metrics.readings.explain.explanation_progress import Progress
    from adapter.metrics.readings.reading_sources import ReadingSources
    from adapter.metrics.rulebook.model import Metric


@dataclass(frozen=True, slots=True)
class SampleAges:
    """When the newest sample of each object's series was taken, in Unix seconds."""

    asked_at: float
    newest: Mapping[str, float]
    """The time by object name; the empty name has the time of the newest sample of all objects."""

    @classmethod
    def fetch(cls, sources: ReadingSources, progress: Progress, metric: Metric, names: Sequence[str]) -> SampleAges:
        """Ask Prometheus for the times of the samples; a time that is not returned in time stays unknown.

        The series are those that the rule names. A value that also comes from other series is at least as old as they
        are.
        """
        second, seconds = float(math.floor(sources.clock.wall())), progress.seconds_to_ask()
        if seconds <= 0 or not metric.series:
            return cls(second, {})
        try:
            query = timestamps_query(metric, names, progress.question)
            prometheus = sources.backends.of(metric.rule.backend).prometheus
            answer = prometheus.instant(query, timeout_seconds=seconds, at=second)
            samples = [sample for batch in answer.batches(sources.pace) for sample in batch]
        except (PrometheusError, RenderError):
            return cls(second, {})
        label = metric.object_label
        newest = {
            "" if label is None else sample.labels.get(label, ""): sample.value
            for sample in samples
            if is_moment(sample.value)
        }
        return cls(second, newest)

    def of(self, shown: str, name: str | None, value: float) -> ExplainedValue:
        """Return a value with the age of its newest sample."""
        newest = self.newest.get(name or "")
        if newest is None:
            return ExplainedValue(shown, value, None, None)
        return ExplainedValue(shown, value, datetime.fromtimestamp(newest, UTC), max(0.0, self.asked_at - newest))


def timestamps_query(metric: Metric, names: Sequence[str] | None, question: Question) -> str:
    """Return the query for the time of the newest sample of each object's series. Raises RenderError."""
    matchers = selector_matchers(question.selector)
    if metric.namespace_label is not None and metric.namespaced and question.namespace is not None:
        matchers.append(value_matcher(metric.namespace_label, question.namespace))
    by = ""
    if metric.object_label is not None:
        by = f" by ({label_in_query(metric.object_label)})"
        label = metric.object_label
        matchers.append(names_matcher(label, names) if names else presence_matcher(label))
    name = metric.series
    if not is_metric_name(name):
        matchers.insert(0, value_matcher("__name__", name))
        name = ""
    return f"max{by} (timestamp({name}{{{','.join(map(str, matchers))}}}))"
