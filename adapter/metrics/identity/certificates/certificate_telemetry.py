"""Metrics of the serving certificate: its dates, and which APIServices trust one that a Secret keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Gauge

if TYPE_CHECKING:
    from datetime import datetime

    from adapter.metrics.identity.certificates.generations import Generation


class CertificateDates:
    """The dates of the serving certificate as Prometheus metrics."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register the metrics."""
        self._not_after = Gauge(
            "tidewatch_adapter_serving_certificate_not_after_timestamp_seconds",
            "When the serving certificate expires.",
            registry=registry,
        )
        self._not_before = Gauge(
            "tidewatch_adapter_serving_certificate_not_before_timestamp_seconds",
            "From when the serving certificate is valid.",
            registry=registry,
        )

    def set_dates(self, not_before: datetime, not_after: datetime) -> None:
        """Set from when and until when the certificate is valid."""
        self._not_before.set(not_before.timestamp())
        self._not_after.set(not_after.timestamp())


class CertificateMetrics:
    """The serving certificate that a Secret keeps as Prometheus metrics."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register the metrics."""
        self._dates = CertificateDates(registry)
        self._published = Gauge(
            "tidewatch_adapter_serving_certificate_published",
            "1 if the caBundle of the APIService holds the authority of the serving certificate in use.",
            ["apiservice"],
            registry=registry,
        )

    def set_dates(self, generation: Generation) -> None:
        """Set the dates of the certificate."""
        self._dates.set_dates(generation.certificate.not_valid_before_utc, generation.certificate.not_valid_after_utc)

    def set_trust(self, apiservice: str, *, held: bool) -> None:
        """Set whether the APIService trusts the certificate."""
        self._published.labels(apiservice).set(held)
