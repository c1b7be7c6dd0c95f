"""Metrics about the APIs.

`metrics_apiserver_metric_freshness_seconds` has the name and buckets on which dashboards for prometheus-adapter rely.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

from adapter.metrics.apis.routing import VERSIONS

GROUPS = (*VERSIONS, "other")
_KNOWN_VERBS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})

_DURATION_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_AGE_BUCKETS = (1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 45.0, 55.0, 60.0, 90.0, 120.0, 300.0)
_FRESHNESS_BUCKETS = tuple(round(1.364**power, 3) for power in range(20))


class Telemetry:
    """Counters and histograms of the APIs, registered in the given registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "tidewatch_adapter_requests",
            "Requests that were answered; group is `other` outside of the metrics APIs.",
            ["group", "verb", "code"],
            registry=registry,
        )
        durations = Histogram(
            "tidewatch_adapter_request_duration_seconds",
            "Time to answer a request, excluding the wait for a thread and sending.",
            ["group"],
            buckets=_DURATION_BUCKETS,
            registry=registry,
        )
        freshness = Histogram(
            "metrics_apiserver_metric_freshness_seconds",
            "Age of the values in an answer: now minus their timestamp. One observation per answer.",
            ["group"],
            buckets=_FRESHNESS_BUCKETS,
            registry=registry,
        )
        self._age = Histogram(
            "tidewatch_adapter_answer_age_seconds",
            "Age of answers: now minus the evaluation time of the query.",
            buckets=_AGE_BUCKETS,
            registry=registry,
        )
        self._durations = {group: durations.labels(group) for group in GROUPS}
        self._freshness = {group: freshness.labels(group) for group in VERSIONS}
        self._counted: dict[tuple[str, str, int], Counter] = {}

    def record_request(self, group: str, verb: str, code: int, seconds: float) -> None:
        """Record a request and its duration; `group` is one of `GROUPS`."""
        key = (group, verb if verb in _KNOWN_VERBS else "OTHER", code)
        counted = self._counted.get(key)
        if counted is None:
            counted = self._counted[key] = self._requests.labels(key[0], key[1], str(code))
        counted.inc()
        self._durations[group].observe(seconds)

    def observe_age(self, group: str, age_seconds: float) -> None:
        """Observe the age of an answer with values."""
        self._age.observe(age_seconds)
        self._freshness[group].observe(age_seconds)
