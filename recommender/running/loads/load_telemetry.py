"""The recommender's own metrics of loads: histories, downloads, fits."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Gauge

if TYPE_CHECKING:
    from collections.abc import Collection

_PREFIX: Final = "tidewatch_recommender_load"


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a history is available."""

    samples: int
    """Known samples of all targets."""
    targets: int
    seconds: float
    """Length of the longest known history of a target's load."""
    lacking_seconds: float
    """How much of the history has not been requested from Prometheus yet."""


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
        self._lock = threading.Lock()
        self._kept: frozenset[str] | None = None
        """The recommendations in use; None before the first call of `keep`. Work for others may still end, and is not
        counted: nothing would remove its series."""
        self._seen: set[str] = set()
        """The recommendations that may have series."""

    def set_series_left_out(self, recommendation: str, count: int) -> None:
        """Set how many series of the last answer belong to no target."""
        with self._lock:
            if self._is_kept(recommendation):
                self._left_out.labels(recommendation).set(count)

    def count_bounded_forecast(self, recommendation: str, model: str) -> None:
        """Count a forecast that was capped."""
        with self._lock:
            if self._is_kept(recommendation):
                self._bounded.labels(recommendation, model).inc()

    def count_download(self, recommendation: str, result: str) -> None:
        """Count a request for a piece of a history."""
        with self._lock:
            if self._is_kept(recommendation):
                self._downloads.labels(recommendation, result).inc()

    def count_trial(self, recommendation: str, model: str, result: str) -> None:
        """Count a trial of a model, or, as model `choice`, a choice among models."""
        with self._lock:
            if self._is_kept(recommendation):
                self._trials.labels(recommendation, model, result).inc()

    def set_coverage(self, recommendation: str, coverage: Coverage) -> None:
        """Set how much of a history is available."""
        with self._lock:
            if not self._is_kept(recommendation):
                return
            self._samples.labels(recommendation).set(coverage.samples)
            self._targets.labels(recommendation).set(coverage.targets)
            self._seconds.labels(recommendation).set(coverage.seconds)
            self._lacking.labels(recommendation).set(coverage.lacking_seconds)

    def keep(self, recommendations: Collection[str]) -> None:
        """Forget all but these recommendations, and count nothing of others from now on."""
        with self._lock:
            self._kept = frozenset(recommendations)
            for gone in self._seen - self._kept:
                self._remove(gone)

    def forget(self, recommendation: str) -> None:
        """Forget what was shown of a recommendation, which may begin anew."""
        with self._lock:
            self._remove(recommendation)

    def _is_kept(self, recommendation: str) -> bool:
        if self._kept is not None and recommendation not in self._kept:
            return False
        self._seen.add(recommendation)
        return True

    def _remove(self, recommendation: str) -> None:
        self._seen.discard(recommendation)
        gauges = (self._samples, self._targets, self._seconds, self._lacking, self._left_out)
        for family in (*gauges, self._downloads, self._bounded, self._trials):
            family.remove_by_labels({"recommendation": recommendation})
