"""Makes the reading of an external metric from the samples of an answer, slice by slice."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from adapter.metrics.readings.samples.external_reading import ExternalReading, Flawed
from adapter.metrics.readings.samples.object_reading import Dropped
from adapter.metrics.readings.samples.series import identity_of
from adapter.metrics.rulebook.model import PlanKind
from adapter.metrics.rulebook.plans import RowIndex
from adapter.metrics.rulebook.requests import PlannedQuery, Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.sources.prometheus.answers.decoding import Sample
    from adapter.metrics.readings.samples.sample_times import SampleTimes


_ORDINARY_CHARACTERS = 500
"""Characters that the label values of an ordinary row have together."""


class ExternalReadingBuilder:
    """Collects the rows of one answer. Not thread-safe."""

    def __init__(
        self, planned: PlannedQuery, namespace_label: str | None, times: SampleTimes, labels: frozenset[str]
    ) -> None:
        """Begin a reading for a query.

        `namespace_label` is the label that contains the namespace; None if the rule names none. `times` judges the
        times of the rows. `labels` are the labels by which requesters select rows.
        """
        self.dropped: Counter[Dropped] = Counter()
        self._planned = planned
        self._namespace_label = namespace_label
        self._times = times
        self._rows: list[Row] = []
        self._histograms: list[Row] = []
        self._late: list[Row] = []
        self._long = 0
        self._seen: set[int] = set()
        self._doubtful: set[int] = set()
        own = frozenset() if planned.namespace_label is None else {planned.namespace_label}
        self._index = RowIndex(() if planned.kind is PlanKind.EXACT else sorted(labels | own))

    def add(self, samples: Iterable[Sample], histograms: Iterable[Mapping[str, str]] = ()) -> None:
        """Add some samples; of native histograms, only the labels."""
        rows: list[Row] = []
        for sample in samples:
            row = Row(sample.labels, sample.value)
            rows.append(row)
            if not self._times.admits(sample.timestamp):
                self._late.append(row)
        unusable = [Row(labels, math.nan) for labels in histograms]
        self._histograms += unusable
        rows += unusable
        # Only the hashes of label sets are kept: 100,000 sets would take a hundred megabytes.
        marks = list(map(_mark, rows))
        fresh = set(marks) - self._seen
        self._seen |= fresh
        if len(fresh) < len(marks):
            self._doubtful.update(mark for mark, number in Counter(marks).items() if number > 1 or mark not in fresh)
        self._long += sum(
            characters - _ORDINARY_CHARACTERS
            for row in rows
            if (characters := sum(map(len, row.labels.values()))) > _ORDINARY_CHARACTERS
        )
        self._rows.extend(rows)
        self._index.add(rows)

    def finish(self) -> ExternalReading:
        """Return the reading, and count its unusable rows in `dropped`."""
        counted = {Dropped.STALE: self._late, Dropped.HISTOGRAM: self._histograms, Dropped.DUPLICATE: self._twins()}
        self.dropped.update({reason: len(rows) for reason, rows in counted.items() if rows})
        ids = {reason: frozenset(map(id, rows)) for reason, rows in counted.items()}
        flawed = Flawed(ids[Dropped.HISTOGRAM], ids[Dropped.STALE], ids[Dropped.DUPLICATE])
        evaluated = self._times.evaluation()
        return ExternalReading(
            self._planned, evaluated, self._rows, self._index, flawed, self._namespace_label, self._long
        )

    def _twins(self) -> list[Row]:
        """Return the rows that share all labels with another row."""
        if not self._doubtful:
            return []
        alike: dict[frozenset[tuple[str, str]], list[Row]] = {}
        for row in self._rows:
            if _mark(row) in self._doubtful:
                alike.setdefault(identity_of(row), []).append(row)
        return [row for rows in alike.values() if len(rows) > 1 for row in rows]


def _mark(row: Row) -> int:
    return hash(identity_of(row))
