"""Recommendations as Prometheus metrics, whose text is made once for each poll and served at each scrape.

The names and labels are an interface (`docs/recommender-outputs.md`): rules, dashboards and alerts use them. With
thousands of targets, a scrape must not delay the thread that also answers health checks, so it only copies bytes.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from adapter.foundation.web.metric_text import label
from recommender.decisions.record import Record, Status
from recommender.decisions.summary import WORST_FIRST
from recommender.outputs.metric_text import (
    Samples,
    exposition_of,
    labels_of_each_target,
    recommendation_label,
    target_labels,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from recommender.decisions.publication import Publication

_WITH_VALUE = frozenset({Status.OK, Status.HELD})
_HELP: Final = {
    "tidewatch_recommended_replicas": "Replicas after all constraints. A recommendation without a valid value has no "
    "sample.",
    "tidewatch_target_replicas": "Replicas that each target had when the value was decided. A target of unknown size "
    "has no sample.",
    "tidewatch_recommendation_step": "The value after each step of the calculation; not with forEach.",
    "tidewatch_recommendation_binding": "1 for the step that determined the value, which is the last one that "
    "changed it; not with forEach.",
    "tidewatch_recommendation_timestamp_seconds": "When the value was decided, in seconds since the Unix epoch. A held "
    "value keeps its time.",
    "tidewatch_recommendation_status": "1 for the current status of a recommendation, 0 for the others. With forEach "
    "each target has the sample of its current status alone.",
}
"""Help of the families, in the order in which they are served."""


class MeasuredKind(Protocol):
    """A kind of recommendation with metrics of its own (`kinds.kind.Kind`)."""

    @property
    def families(self) -> Mapping[str, str]:
        """Help by name, in the order in which they are served."""

    def samples(self, records: Iterable[Record]) -> Mapping[str, Samples]:
        """Return the samples of each family; `records` are those that have a valid value."""


class RecommendationMetrics:
    """The metrics of recommendations, which only the leader exposes.

    `publish` must be called from a single thread; `text` may be called from any thread.
    """

    def __init__(
        self,
        is_leader: Callable[[], bool],
        kinds: Sequence[MeasuredKind],
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """`is_leader` and `wall_clock` are called at each scrape, since the leadership or the polls may have ended."""
        self._kinds = kinds
        self._families = dict(_HELP)
        for kind in kinds:
            self._families |= kind.families
        self._is_leader = is_leader
        self._wall_clock = wall_clock
        self._prepared: _Prepared | None = None
        self._without_samples = exposition_of(self._families, {})

    def publish(self, publication: Publication) -> None:
        """Prepare the metrics of the latest records."""
        samples = _samples(publication.records, self._kinds)
        self._prepared = _Prepared(publication, exposition_of(self._families, samples))

    def text(self) -> bytes:
        """Return the families in Prometheus's text format, version 0.0.4.

        They have samples only while this process leads and its last poll is recent enough.
        """
        prepared = self._prepared
        if prepared is None or not self._is_leader() or not prepared.publication.is_valid(self._wall_clock()):
            return self._without_samples
        return prepared.text


@dataclass(frozen=True, slots=True)
class _Prepared:
    publication: Publication
    text: bytes


def _samples(records: Sequence[Record], kinds: Iterable[MeasuredKind]) -> dict[str, Samples]:
    """Return the samples of each family; if several records have the same series, it is exposed only once."""
    valid = [record for record in records if record.status in _WITH_VALUE]
    # With forEach, each target would have its own steps, which are only in the JSON.
    explained = [record for record in valid if record.each is None]
    samples = {
        "tidewatch_recommended_replicas": _replicas(valid),
        "tidewatch_target_replicas": _current_replicas(valid),
        "tidewatch_recommendation_step": _steps(explained),
        "tidewatch_recommendation_binding": _bindings(explained),
        "tidewatch_recommendation_timestamp_seconds": _timestamps(valid),
        "tidewatch_recommendation_status": _statuses(records),
    }
    for kind in kinds:
        for name, found in kind.samples(valid).items():
            # More than one kind sizes containers.
            samples[name] = {**samples.get(name, {}), **found}
    return samples


def _replicas(records: Iterable[Record]) -> Samples:
    samples: Samples = {}
    for record in records:
        own = [outcome.recommended_replicas for outcome in record.targets] or [record.replicas]
        for labels, replicas in zip(labels_of_each_target(record), own, strict=True):
            if replicas is not None:
                samples.setdefault(labels, float(replicas))
    return samples


def _current_replicas(records: Iterable[Record]) -> Samples:
    return {
        f"{recommendation_label(record)},{target_labels(outcome.target)}": float(current)
        for record in records
        for outcome in record.targets
        if (current := outcome.current_replicas) is not None
    }


def _steps(records: Iterable[Record]) -> Samples:
    return {
        f"{recommendation_label(record)},{label('step', step.step)}": float(step.value)
        for record in records
        for step in record.steps
        if math.isfinite(step.value)
    }


def _bindings(records: Iterable[Record]) -> Samples:
    return {
        f"{recommendation_label(record)},{label('step', record.binding)}": 1.0
        for record in records
        if record.binding is not None
    }


def _timestamps(records: Iterable[Record]) -> Samples:
    """Return the time of each recommendation or target. If there are several records, their oldest time is used."""
    samples: Samples = {}
    for record in records:
        name = recommendation_label(record)
        labels = name if record.each is None else f"{name},{target_labels(record.each)}"
        samples[labels] = float(min(record.time, samples.get(labels, math.inf)))
    return samples


def _statuses(records: Iterable[Record]) -> Samples:
    samples: Samples = {}
    worst: dict[str, Status] = {}
    for record in records:
        name = recommendation_label(record)
        if record.each is None:
            worst[name] = min(worst.get(name, Status.OK), record.status, key=WORST_FIRST.index)
        else:
            samples[f"{name},{label('status', record.status)},{target_labels(record.each)}"] = 1.0
    for name, present in worst.items():
        samples |= {f"{name},{label('status', status)}": float(status is present) for status in Status}
    return samples
