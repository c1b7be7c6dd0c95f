"""Recommendations as Prometheus metrics, made from the latest records whenever somebody scrapes.

The names and labels are an interface (`docs/recommender-outputs.md`): rules, dashboards and alerts use them.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from recommender.decisions.record import Status
from recommender.outputs.prediction_metrics import prediction_families

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from prometheus_client.metrics_core import Metric

    from recommender.decisions.publication import Publication
    from recommender.decisions.record import Record

_WITH_VALUE = frozenset({Status.OK, Status.HELD})
_WORST_FIRST = (Status.ERROR, Status.STALE, Status.HELD, Status.OK)
_TARGET_LABELS = ("recommendation", "target_namespace", "target_kind", "target_name")


class RecommendationCollector(Collector):
    """The metrics of each recommendation, on the leader alone."""

    def __init__(
        self,
        latest: Callable[[], Publication],
        is_leader: Callable[[], bool],
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """Both functions are called at each scrape: the leadership or the polls may have ended since the last one."""
        self._latest = latest
        self._is_leader = is_leader
        self._wall_clock = wall_clock

    def collect(self) -> Iterator[Metric]:
        """Yield the families; they have samples only while this process leads and its last poll is recent enough."""
        latest = self._latest()
        records = latest.records if self._is_leader() and latest.is_valid(self._wall_clock()) else ()
        yield _family(
            "tidewatch_recommended_replicas",
            "Replicas after all constraints. A recommendation without a valid value has no sample.",
            _TARGET_LABELS,
            _replicas(records),
        )
        yield _family(
            "tidewatch_target_replicas",
            "Replicas that each target had when the value was decided. A target of unknown size has no sample.",
            _TARGET_LABELS,
            _current_replicas(records),
        )
        yield _family(
            "tidewatch_recommendation_step",
            "The value after each step of the calculation.",
            ("recommendation", "step"),
            _steps(records),
        )
        yield _family(
            "tidewatch_recommendation_binding",
            "1 for the step that decides the value: the last one that changed it.",
            ("recommendation", "step"),
            _bindings(records),
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
        yield from prediction_families([record for record in records if record.status in _WITH_VALUE])


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


def _current_replicas(records: Iterable[Record]) -> dict[tuple[str, ...], float]:
    return {
        (record.name, outcome.target.namespace, outcome.target.kind, outcome.target.name): float(current)
        for record in records
        if record.status in _WITH_VALUE
        for outcome in record.targets
        if (current := outcome.current_replicas) is not None
    }


def _steps(records: Iterable[Record]) -> dict[tuple[str, ...], float]:
    return {
        (record.name, step.step): step.value
        for record in records
        if record.status in _WITH_VALUE
        for step in record.steps
        if math.isfinite(step.value)
    }


def _bindings(records: Iterable[Record]) -> dict[tuple[str, ...], float]:
    return {
        (record.name, record.binding): 1.0
        for record in records
        if record.status in _WITH_VALUE and record.binding is not None
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
