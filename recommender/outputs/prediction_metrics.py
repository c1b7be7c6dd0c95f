"""Forecasts as Prometheus metrics: predicted and observed load, the model in use, and its record against headroom."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from statistics import fmean
from typing import TYPE_CHECKING

from prometheus_client.metrics_core import GaugeMetricFamily

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from prometheus_client.metrics_core import Metric

    from recommender.decisions.record import Prediction, Record

    Labels = tuple[str, ...]

_TARGET_LABELS = ("recommendation", "target_namespace", "target_kind", "target_name")


def prediction_families(records: Iterable[Record]) -> Iterator[Metric]:
    """Yield the families; `records` are those that have a valid value."""
    found = [(record, record.prediction) for record in records if record.prediction is not None]
    yield _family(
        "tidewatch_predicted_load",
        "Load that is expected when capacity that is asked for now serves, by quantile.",
        (*_TARGET_LABELS, "quantile"),
        _predicted(found),
    )
    yield _family(
        "tidewatch_observed_load",
        "Load that the forecast was made from.",
        _TARGET_LABELS,
        {labels: prediction.load.now for record, prediction in found for labels in _targets(record)},
    )
    yield _family(
        "tidewatch_model_active",
        "Targets that use the model: 1 for the model in use, unless the recommendation has many targets.",
        ("recommendation", "model"),
        {key: float(count) for key, count in Counter((each.name, made.model) for each, made in found).items()},
    )
    yield _family(
        "tidewatch_model_shortage_versus_headroom",
        "Recent shortage of each model, divided by that of plain headroom at the same cost; the mean over the targets.",
        ("recommendation", "model"),
        _shortages(found),
    )


def _family(name: str, text: str, labels: Labels, samples: Mapping[Labels, float]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, value in samples.items():
        if math.isfinite(value):
            family.add_metric(values, value)
    return family


def _predicted(found: Iterable[tuple[Record, Prediction]]) -> dict[Labels, float]:
    """Return the quantiles; a target whose model has no forecast has no sample, so that nothing shrinks by it."""
    return {
        (*labels, quantile): value
        for record, prediction in found
        if prediction.load.predicted is not None
        for labels in _targets(record)
        for quantile, value in prediction.load.quantiles.items()
    }


def _targets(record: Record) -> Iterator[Labels]:
    if not record.targets:
        yield (record.name, "", "", "")
    for outcome in record.targets:
        target = outcome.target
        yield (record.name, target.namespace, target.kind, target.name)


def _shortages(found: Iterable[tuple[Record, Prediction]]) -> dict[Labels, float]:
    ratios: dict[Labels, list[float]] = defaultdict(list)
    for record, prediction in found:
        for model, ratio in prediction.shortage_versus_headroom.items():
            if ratio is not None:
                ratios[record.name, model].append(ratio)
    return {key: fmean(values) for key, values in ratios.items()}
