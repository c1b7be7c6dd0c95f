"""Metrics about reviews: how many are sent to the API server, and their results."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter


class IdentityTelemetry:
    """Counters of reviews, registered in the given registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._authentication = Counter(
            "tidewatch_adapter_authentication_reviews",
            "Token reviews by result: authenticated, unauthenticated, error. Cached results are not counted.",
            ["result"],
            registry=registry,
        )
        self._authorization = Counter(
            "tidewatch_adapter_authorization_reviews",
            "Access reviews by result: allowed, denied, error. Cached results are not counted.",
            ["result"],
            registry=registry,
        )
        self._stale = Counter(
            "tidewatch_adapter_authorization_stale_answers",
            "Requests through the front proxy that were allowed by an expired decision, because reviews failed.",
            registry=registry,
        )
        for result in ("authenticated", "unauthenticated", "error"):
            self._authentication.labels(result)
        for result in ("allowed", "denied", "error"):
            self._authorization.labels(result)

    def count_authentication_review(self, result: str) -> None:
        """Count a token review."""
        self._authentication.labels(result).inc()

    def count_authorization_review(self, result: str) -> None:
        """Count an access review."""
        self._authorization.labels(result).inc()

    def count_stale_answer(self) -> None:
        """Count a request that was allowed by an expired decision."""
        self._stale.inc()
