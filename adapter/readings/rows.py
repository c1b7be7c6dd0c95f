"""The answer to one query of an external metric: rows, and each asker's part of them, made when first asked for."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from adapter.readings.errors import PartialAnswerError, UnanswerableSelectorError
from adapter.readings.snapshot import Dropped
from adapter.rulebook.matchers import RenderError
from adapter.rulebook.model import PlanKind
from adapter.rulebook.plans import RowIndex, fold_rows
from adapter.rulebook.quoting import go_quoted
from adapter.rulebook.requests import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence, Sized

    from adapter.objects.selectors import Selector
    from adapter.readings.snapshot import Evaluation
    from adapter.rulebook.requests import PlannedQuery
    from adapter.sources.prometheus.decoding import Sample

_SHOWN_ROWS = 3
_PART = 500


class ExternalReading:
    """Rows of an external metric at one moment, which never change; parts already made of them are kept beside.

    A thousand selectors on ten thousand rows would be ten million comparisons a refresh, so rows are indexed by the
    labels that askers select by, while the reading is built.
    """

    def __init__(self, planned: PlannedQuery, evaluated: Evaluation, rows: Sequence[Row], index: RowIndex) -> None:
        self.evaluated = evaluated
        self._planned = planned
        self._rows = rows
        self._index = index
        self._made: dict[tuple[str | None, Selector], tuple[Row, ...] | _NotFinite] = {}
        self._aged: set[tuple[str | None, Selector]] = set()
        self.times: ExternalReading | None = None
        """For which moments (unix seconds) its series had samples; None where the rule does not limit their age.

        Set before the reading is handed on.
        """
        self.note: str | None = None
        """What keeps samples from being rows, where something does; set likewise."""
        self.steady_seconds = 0.0
        """For how long Prometheus had been there at that moment; set likewise."""

    def answer(
        self, namespace: str | None, selector: Selector, count: Callable[[Counter[Dropped]], None]
    ) -> tuple[Row, ...]:
        """Return an asker's rows; `count` is told of dropped ones, once for each asker.

        Rows are folded first and dropped after: the exact query would have summed a NaN in. Where no row is finite
        there is no data. Where some are and others are not it is an error: an HPA sums the rows, and a sum without
        them would be too low. Raises PartialAnswerError, and UnanswerableSelectorError for a selector that cannot be
        evaluated.
        """
        made = self._made.get((namespace, selector))
        if made is None:
            made = self._made[namespace, selector] = self._make(namespace, selector, count)
        if isinstance(made, _NotFinite):
            raise PartialAnswerError(made)
        return made

    def has_no_data(self, namespace: str | None, selector: Selector) -> bool:
        """Return whether it is sure that Prometheus has nothing for an asker. Raises UnanswerableSelectorError."""
        return self.note is None and all(math.isnan(row.value) for row in self._select(namespace, selector))

    def sample_age(self, namespace: str | None, selector: Selector) -> float | None:
        """Return how old the samples of an asker's rows were at the evaluation, in seconds; None if none was there.

        The oldest of their series tells, each by its newest sample.
        """
        moments = [row.value for row in self.times.rows(namespace, selector)] if self.times else ()
        return self.evaluated.wall - min(moments) if moments else None

    def is_first_aged(self, namespace: str | None, selector: Selector) -> bool:
        """Note that an asker's rows are too old; return whether that was not noted yet, so that it counts once."""
        before = len(self._aged)
        self._aged.add((namespace, selector))
        return len(self._aged) > before

    def rows(self, namespace: str | None, selector: Selector) -> Sequence[Row]:
        """Return an asker's rows as they come, those that are not finite included. Raises UnanswerableSelectorError."""
        return self._select(namespace, selector)

    def parts(self) -> list[Sized]:
        """Return what it is made of, for freeing it piece by piece."""
        own: list[Sized] = [self._rows[start : start + _PART] for start in range(0, len(self._rows), _PART)]
        return own if self.times is None else own + self.times.parts()

    def _make(
        self, namespace: str | None, selector: Selector, count: Callable[[Counter[Dropped]], None]
    ) -> tuple[Row, ...] | _NotFinite:
        rows = self._select(namespace, selector)
        finite = tuple(row for row in rows if math.isfinite(row.value))
        if len(finite) == len(rows):
            return finite
        if finite:
            return _not_finite(rows)
        count(Counter(Dropped.NAN if math.isnan(row.value) else Dropped.INF for row in rows))
        return finite

    def _select(self, namespace: str | None, selector: Selector) -> Sequence[Row]:
        planned = self._planned
        if planned.kind is PlanKind.EXACT:
            return self._rows
        try:
            rows = self._index.select(planned.namespace_label, namespace, selector)
        except RenderError as error:
            raise UnanswerableSelectorError(str(error)) from error
        return rows if planned.fold is None else fold_rows(planned.fold, rows)


class ExternalReadingBuilder:
    """Files the rows of one answer. For one thread."""

    def __init__(
        self, planned: PlannedQuery, restricted_to: tuple[str | None, str | None], oldest: float, labels: frozenset[str]
    ) -> None:
        """Build for a query.

        `restricted_to`: label and name of the namespace that the query was restricted to, None each where it was not;
        rows that carry another are dropped. `oldest`: rows with a timestamp before it are stale (unix seconds).
        `labels`: those that askers select by.
        """
        self.dropped: Counter[Dropped] = Counter()
        self._planned = planned
        self._restricted_to = restricted_to
        self._oldest = oldest
        self._rows: list[Row] = []
        own = frozenset() if planned.namespace_label is None else {planned.namespace_label}
        self._index = RowIndex(() if planned.kind is PlanKind.EXACT else sorted(labels | own))

    def add(self, samples: Iterable[Sample]) -> None:
        """File some samples."""
        rows = [Row(sample.labels, sample.value) for sample in samples if self._wanted(sample)]
        self._rows.extend(rows)
        self._index.add(rows)

    def finish(self, evaluated: Evaluation) -> ExternalReading:
        """Return what was filed."""
        return ExternalReading(self._planned, evaluated, self._rows, self._index)

    def _wanted(self, sample: Sample) -> bool:
        if sample.timestamp < self._oldest:
            self.dropped[Dropped.STALE] += 1
            return False
        label, namespace = self._restricted_to
        if label is not None and namespace is not None and sample.labels.get(label, namespace) != namespace:
            self.dropped[Dropped.FOREIGN_NAMESPACE] += 1
            return False
        return True


class _NotFinite(str):
    """Why an asker's rows cannot be summed."""

    __slots__ = ()


def _not_finite(rows: Sequence[Row]) -> _NotFinite:
    bad = [row for row in rows if not math.isfinite(row.value)]
    shown = "; ".join(f"{as_series(row.labels)} is {row.value}" for row in bad[:_SHOWN_ROWS])
    return _NotFinite(
        f"{len(bad)} of {len(rows)} series have no finite value ({shown}): a sum without them would be too low; "
        "aggregate or filter them in the rule's metricsQuery"
    )


def as_series(labels: Mapping[str, str]) -> str:
    """Return the labels as Prometheus writes a series: `name{label="value"}`."""
    others = ",".join(f"{name}={go_quoted(value)}" for name, value in sorted(labels.items()) if name != "__name__")
    return f"{labels.get('__name__', '')}{{{others}}}"
