"""The recommender's own metrics: polls, decisions, scale calls, events, and stored memories."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from recommender.decisions.object_names import object_namespace
from recommender.outputs.scale_results import ScaleResult

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0)
_POLLS = ("ok", "error")
_EVENTS = ("created", "suppressed", "dropped", "forbidden", "error")
_MEMORY_WRITES = ("ok", "conflict", "fenced", "error")


def counted_as(recommendation: str) -> str:
    """Return the label of a recommendation in counters.

    Recommendation objects come and go, so all objects of a namespace share one label.
    """
    namespace = object_namespace(recommendation)
    return f"{namespace}/*" if namespace else recommendation


class RecommenderTelemetry:
    """Counters and histograms, registered in the given registry. Thread-safe."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._lock = threading.Lock()
        self._counted: set[str] = set()
        """The labels that have counters."""
        self._scale_calls = Counter(
            "tidewatch_scale_calls",
            "Scale calls and decisions not to send one, by result: ok, unchanged, conflict, error, refused, "
            "superseded, fenced, expired.",
            ("recommendation", "result"),
            registry=registry,
        )
        self._polls = Counter(
            "tidewatch_recommender_polls",
            "Polls by result: ok; error, if a recommendation had no value because of an error.",
            ("result",),
            registry=registry,
        )
        self._last_poll = Gauge(
            "tidewatch_recommender_last_poll_timestamp_seconds",
            "When a poll last ended, in seconds since the Unix epoch.",
            registry=registry,
        )
        self._poll_interval = Gauge(
            "tidewatch_recommender_poll_interval_seconds",
            "Time between two polls while nothing changes.",
            registry=registry,
        )
        self._poll_duration = Histogram(
            "tidewatch_recommender_poll_duration_seconds",
            "Duration of a poll, look-ups included.",
            registry=registry,
            buckets=_BUCKETS,
        )
        self._duration = Histogram(
            "tidewatch_recommender_decision_duration_seconds",
            "Duration of the decision of a recommendation.",
            ("recommendation",),
            registry=registry,
            buckets=_BUCKETS,
        )
        self._events = Counter(
            "tidewatch_recommender_events",
            "Kubernetes events by result: created, suppressed (a repetition), dropped (too many), forbidden, error.",
            ("result",),
            registry=registry,
        )
        self._memory_writes = Counter(
            "tidewatch_recommender_memory_writes",
            "Writes of what decisions remember, by result: ok, conflict, fenced, error.",
            ("result",),
            registry=registry,
        )
        self._history_failures = Counter(
            "tidewatch_recommender_history_failures",
            "Failed writes and reads of the history of the page.",
            registry=registry,
        )
        self._start_at_zero()

    def _start_at_zero(self) -> None:
        """Export all results before the first one, so that a rate shows it."""
        for counter, results in (
            (self._polls, _POLLS),
            (self._events, _EVENTS),
            (self._memory_writes, _MEMORY_WRITES),
        ):
            for result in results:
                counter.labels(result)

    def set_poll_interval(self, seconds: float) -> None:
        """Set the time between two polls, which alerts need to know."""
        self._poll_interval.set(seconds)

    def add_scale_output(self, recommendation: str) -> None:
        """Export the scale calls of a recommendation as 0 before the first one."""
        with self._of(recommendation) as label:
            for result in ScaleResult:
                self._scale_calls.labels(label, result.value)

    def count_scale_call(self, recommendation: str, result: ScaleResult) -> None:
        """Count a scale call."""
        with self._of(recommendation) as label:
            self._scale_calls.labels(label, result.value).inc()

    def record_poll(self, seconds: float, failures: int) -> None:
        """Record a poll: its duration, and how many recommendations had no value because of an error."""
        self._poll_duration.observe(seconds)
        self._polls.labels("error" if failures else "ok").inc()
        self._last_poll.set_to_current_time()

    def observe_decision(self, recommendation: str, seconds: float) -> None:
        """Observe the duration of a decision."""
        with self._of(recommendation) as label:
            self._duration.labels(label).observe(seconds)

    def keep(self, recommendations: Collection[str], objects: Collection[str] | None) -> None:
        """Drop the counters of all but these recommendations and the namespaces of these objects.

        Those of objects are all kept if `objects` is None (unknown).
        """
        kept = {counted_as(name) for name in (*recommendations, *(objects or ()))}
        with self._lock:
            gone = {each for each in self._counted - kept if objects is not None or not object_namespace(each)}
            self._counted -= gone
            for label in gone:
                for result in ScaleResult:
                    self._scale_calls.remove(label, result.value)
                self._duration.remove(label)

    def count_event(self, result: str) -> None:
        """Count an event: `created`, `suppressed`, `dropped`, `forbidden` or `error`."""
        self._events.labels(result).inc()

    def count_memory_write(self, result: str) -> None:
        """Count a write of a memory: `ok`, `conflict`, `fenced` or `error`."""
        self._memory_writes.labels(result).inc()

    def count_history_failure(self) -> None:
        """Count a write or read of the history that failed."""
        self._history_failures.inc()

    @contextmanager
    def _of(self, recommendation: str) -> Iterator[str]:
        """Yield the label of a recommendation, which `keep` does not remove meanwhile."""
        label = counted_as(recommendation)
        with self._lock:
            self._counted.add(label)
            yield label
