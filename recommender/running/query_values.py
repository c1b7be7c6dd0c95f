"""The value of a PromQL expression, as an input: exactly one number, or the reason why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.cluster.state import Observed, Unknown
from adapter.sources.prometheus.errors import PrometheusError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.sources.prometheus.client import PrometheusClient
    from adapter.sources.prometheus.decoding import Sample
    from adapter.sources.prometheus.settings import PrometheusSettings
    from adapter.timing.pace import Pace

_SHOWN_WARNING_CHARACTERS = 200


class QueryValues:
    """Asks the Prometheus of the configuration in force. `value` is for any number of threads."""

    def __init__(
        self, connect: Callable[[PrometheusSettings], PrometheusClient], pace: Pace, timeout_seconds: float
    ) -> None:
        """`connect` returns a client; it may raise SettingsError."""
        self._connect = connect
        self._pace = pace
        self._timeout_seconds = timeout_seconds
        self._settings: PrometheusSettings | None = None
        self._client: PrometheusClient | None = None
        self._reason = "the configuration has no `prometheus:`: add its url"

    def use(self, settings: PrometheusSettings | None) -> None:
        """Ask this Prometheus from now on; None: there is none to ask."""
        if settings == self._settings:
            return
        before = self._client
        self._settings, self._client = settings, None
        if settings is not None:
            try:
                self._client = self._connect(settings)
            except SettingsError as error:
                self._reason = str(error)
        if before is not None:
            before.close()

    def close(self) -> None:
        """Close the connections."""
        self.use(None)

    def client(self) -> PrometheusClient | None:
        """Return the client of the Prometheus that is asked at present; None if there is none."""
        return self._client

    def value(self, query: str) -> Observed[float] | Unknown:
        """Return the one value of the query at present."""
        found = self.samples(query)
        if isinstance(found, Unknown):
            return found
        if not found.value:
            return Unknown(f"{query} has no value at present: check that its series exist")
        if len(found.value) != 1:
            fix = "write an expression that has exactly one value, such as sum(…)"
            return Unknown(f"{query} has {len(found.value)} values: {fix}")
        return Observed(found.value[0].value, found.time)

    def samples(self, query: str) -> Observed[tuple[Sample, ...]] | Unknown:
        """Return all samples of the query at present. A partial answer counts as none: a sum would be too small."""
        client = self._client
        if client is None:
            return Unknown(self._reason)
        try:
            answer = client.instant(query, timeout_seconds=self._timeout_seconds)
            samples = tuple(sample for batch in answer.batches(self._pace) for sample in batch)
        except PrometheusError as error:
            return Unknown(f"Prometheus has no value: {error}")
        if answer.warnings:
            warning = answer.warnings[0][:_SHOWN_WARNING_CHARACTERS]
            return Unknown(f"Prometheus answered {query} with a warning, so the value may be partial: {warning}")
        if answer.histograms_skipped:
            fix = "write an expression that has numbers, such as histogram_count(…)"
            return Unknown(f"{query} has a histogram: {fix}")
        return Observed(samples, answer.evaluated_at)
