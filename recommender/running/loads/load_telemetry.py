"""The recommender's own metrics of loads: histories, downloads, fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Gauge

if TYPE_CHECKING:
    from collections.abc import Collection

    from recommender.running.loads.histories.load_histories import Coverage

_PREFIX: Final = "tidewatch_recommender_load"


class LoadTelemetry:
    """Counters and gauges, registered in the given registry. For any number of threads."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, text: str) -> Gauge:
            return Gauge(f"{_PREFIX}_{name}", text, ("recommendation",), registry=registry)

        self._samples = gauge("history_samples", "Samples of the load's history in memory, of all targets.")
        self._targets = gauge("targets", "Targets whose load is known now or was known in the last day.")
        self._seconds = gauge("history_seconds", "Length of the longest known history of a target's load.")
        self._lacking = gauge(
            "history_lacking_seconds", "Part of the history that has not been read from Prometheus yet."
        )
        self._left_out = gauge("series_left_out", "Series of the last answer without a target.")
        self._downloads = Counter(
            f"{_PREFIX}_downloads",
            "Requests for a piece of a load's history, by result: ok, partial, timeout, unreachable, refused, ….",
            ("recommendation", "result"),
            registry=registry,
        )
        self._trials = Counter(
            f"{_PREFIX}_model_trials",
            "Trials of models with their fits, and choices among models, by result: ok, deadline, crash, ….",
            ("recommendation", "model", "result"),
            registry=registry,
        )
        self._bounded = Counter(
            "tidewatch_forecast_bounded",
            "Forecasts that were capped at `maxOverHistory` times the largest load of the history, by model.",
            ("recommendation", "model"),
            registry=registry,
        )
        self._left_out_of: set[str] = set()

    def series_left_out(self, recommendation: str, count: int) -> None:
        """Show how many series of the last answer belong to no target."""
        self._left_out_of.add(recommendation)
        self._left_out.labels(recommendation).set(count)

    def forecast_bounded(self, recommendation: str, model: str) -> None:
        """Count a forecast that was capped."""
        self._bounded.labels(recommendation, model).inc()

    def downloaded(self, recommendation: str, result: str) -> None:
        """Count a request for a piece of a history."""
        self._downloads.labels(recommendation, result).inc()

    def learned(self, recommendation: str, model: str, result: str) -> None:
        """Count a trial of a model, or, as model `choice`, a choice among models."""
        self._trials.labels(recommendation, model, result).inc()

    def covered(self, recommendation: str, coverage: Coverage) -> None:
        """Show how much of a history is available."""
        self._samples.labels(recommendation).set(coverage.samples)
        self._targets.labels(recommendation).set(coverage.targets)
        self._seconds.labels(recommendation).set(coverage.seconds)
        self._lacking.labels(recommendation).set(coverage.lacking_seconds)

    def keep(self, recommendations: Collection[str]) -> None:
        """Forget all but these recommendations, even those removed before their history began or during a query."""
        for gone in self._left_out_of - set(recommendations):
            self.removed(gone)

    def removed(self, recommendation: str) -> None:
        """Forget a recommendation that is no longer configured."""
        self._left_out_of.discard(recommendation)
        gauges = (self._samples, self._targets, self._seconds, self._lacking, self._left_out)
        for family in (*gauges, self._downloads, self._bounded, self._trials):
            family.remove_by_labels({"recommendation": recommendation})
