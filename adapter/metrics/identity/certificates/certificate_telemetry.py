"""Metrics of a serving certificate that this program keeps: its expiry, and which APIServices trust it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Gauge

if TYPE_CHECKING:
    from adapter.metrics.identity.certificates.generations import Generation


class CertificateMetrics:
    """The serving certificate as Prometheus metrics."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register the metrics."""
        self._not_after = Gauge(
            "tidewatch_adapter_serving_certificate_not_after_timestamp_seconds",
            "When the self-signed serving certificate in use expires.",
            registry=registry,
        )
        self._published = Gauge(
            "tidewatch_adapter_serving_certificate_published",
            "1 if the caBundle of the APIService holds the authority of the serving certificate in use.",
            ["apiservice"],
            registry=registry,
        )

    def shown(self, generation: Generation) -> None:
        """Set the time of expiry."""
        self._not_after.set(generation.certificate.not_valid_after_utc.timestamp())

    def published(self, apiservice: str, *, held: bool) -> None:
        """Set whether the APIService trusts the certificate."""
        self._published.labels(apiservice).set(held)
