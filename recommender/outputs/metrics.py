"""Recommendations as Prometheus metrics, made from the latest records whenever somebody scrapes.

The names and labels are an interface (`docs/recommender-outputs.md`): rules, dashboards and alerts use them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from recommender.decisions.record import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from prometheus_client.metrics_core import Metric

    from recommender.decisions.record import Record

_WITH_VALUE = frozenset({Status.OK, Status.HELD})
_WORST_FIRST = (Status.ERROR, Status.STALE, Status.HELD, Status.OK)
_TARGET_LABELS = ("recommendation", "target_namespace", "target_kind", "target_name")


class PublishedRecords:
    """The records of the last poll. One thread replaces them as a whole, any number of threads read them."""

    def __init__(self) -> None:
        self._records: tuple[Record, ...] = ()

    @property
    def records(self) -> tuple[Record, ...]:
        """The records of the last poll; empty before the first."""
        return self._records

    def publish(self, records: Iterable[Record]) -> None:
        """Replace all records."""
        self._records = tuple(records)


class RecommendationCollector(Collector):
    """`tidewatch_leader`, and on the leader the metrics of each recommendation."""

    def __init__(self, published: PublishedRecords, is_leader: Callable[[], bool]) -> None:
        self._published = published
        self._is_leader = is_leader

    def collect(self) -> Iterator[Metric]:
        """Yield the families; those of recommendations have samples only while this process leads."""
        leads = self._is_leader()
        records = self._published.records if leads else ()
        yield _family("tidewatch_leader", "1 if this process leads, otherwise 0.", (), {(): float(leads)})
        yield _family(
            "tidewatch_recommended_replicas",
            "Replicas after all constraints. A recommendation without a valid value has no sample.",
            _TARGET_LABELS,
            _replicas(records),
        )
        yield _family(
            "tidewatch_recommendation_step",
            "The value after each step of the calculation.",
            ("recommendation", "step"),
            _steps(records),
        )
        yield _family(
            "tidewatch_recommendation_timestamp_seconds",
            "When the value was decided, in seconds since the Unix epoch. A held value keeps its time.",
            ("recommendation",),
            _timestamps(records),
        )
        yield _family(
            "tidewatch_recommendation_status",
            "1 for the present status of a recommendation, 0 for the others.",
            ("recommendation", "status"),
            _statuses(records),
        )


def _family(name: str, text: str, labels: tuple[str, ...], samples: Mapping[tuple[str, ...], float]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, value in samples.items():
        family.add_metric(values, value)
    return family


def _replicas(records: Iterable[Record]) -> dict[tuple[str, ...], float]:
    samples: dict[tuple[str, ...], float] = {}
    for record in records:
        if record.status not in _WITH_VALUE or record.replicas is None:
            continue
        for outcome in record.targets:
            target = outcome.target
            samples.setdefault((record.name, target.namespace, target.kind, target.name), float(record.replicas))
        if not record.targets:
            samples.setdefault((record.name, "", "", ""), float(record.replicas))
    return samples


def _steps(records: Iterable[Record]) -> dict[tuple[str, ...], float]:
    return {
        (record.name, step.step): step.value
        for record in records
        if record.status in _WITH_VALUE
        for step in record.steps
        if math.isfinite(step.value)
    }


def _timestamps(records: Iterable[Record]) -> dict[tuple[str, ...], float]:
    """Return the oldest time of each name: of several records with one name, the oldest is the one to watch."""
    samples: dict[tuple[str, ...], float] = {}
    for record in records:
        if record.status in _WITH_VALUE:
            samples[record.name,] = min(record.time, samples.get((record.name,), math.inf))
    return samples


def _statuses(records: Iterable[Record]) -> dict[tuple[str, ...], float]:
    worst: dict[str, Status] = {}
    for record in records:
        worst[record.name] = min(worst.get(record.name, Status.OK), record.status, key=_WORST_FIRST.index)
    return {(name, status.value): float(status is present) for name, present in worst.items() for status in Status}
