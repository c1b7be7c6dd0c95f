"""The value of a PromQL expression, as an input: exactly one number, or the reason why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.cluster.state import Observed, Unknown
from adapter.sources.prometheus.errors import PrometheusError

if TYPE_CHECKING:
    from adapter.sources.prometheus.client import PrometheusClient
    from adapter.timing.pace import Pace

_SHOWN_WARNING_CHARACTERS = 200


class QueryValues:
    """Asks one Prometheus. For any number of threads."""

    def __init__(self, client: PrometheusClient, pace: Pace, timeout_seconds: float) -> None:
        self._client = client
        self._pace = pace
        self._timeout_seconds = timeout_seconds

    def value(self, query: str) -> Observed[float] | Unknown:
        """Return the one value of the query at present. A partial answer counts as none: it would be too small."""
        try:
            answer = self._client.instant(query, timeout_seconds=self._timeout_seconds)
            samples = [sample for batch in answer.batches(self._pace) for sample in batch]
        except PrometheusError as error:
            return Unknown(f"Prometheus has no value: {error}")
        if answer.warnings:
            warning = answer.warnings[0][:_SHOWN_WARNING_CHARACTERS]
            return Unknown(f"Prometheus answered {query} with a warning, so the value may be partial: {warning}")
        if len(samples) != 1 or answer.histograms_skipped:
            found = "a histogram" if answer.histograms_skipped else f"{len(samples)} values"
            return Unknown(f"{query} has {found}: write an expression that has exactly one value, such as sum(…)")
        return Observed(samples[0].value, answer.evaluated_at)
