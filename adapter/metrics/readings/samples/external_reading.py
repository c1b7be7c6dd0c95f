"""The answer to one query of an external metric: rows, and each requester's part of them, made when first requested."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.foundation.objects.quantities import fits_milli_units
from adapter.foundation.reports.counts import agreeing
from adapter.metrics.readings.errors import AmbiguousSamplesError, PartialAnswerError, UnanswerableSelectorError
from adapter.metrics.readings.failure import Failure
from adapter.metrics.readings.samples.object_reading import FOREIGN_REPAIR, Dropped, Evaluation
from adapter.metrics.readings.samples.object_reading_builder import (
    BEYOND_MILLI_UNITS,
    HISTOGRAMS,
    OF_ANOTHER_TIME,
    flaw_of_number,
)
from adapter.metrics.readings.samples.series import as_series
from adapter.metrics.rulebook.model import PlanKind
from adapter.metrics.rulebook.plans import RowIndex, fold_rows
from adapter.metrics.rulebook.templates.matchers import RenderError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence, Sized

    from adapter.foundation.objects.selectors import Selector
    from adapter.metrics.readings.samples.silent_series import SilentRows
    from adapter.metrics.rulebook.requests import PlannedQuery, Row

_SHOWN_ROWS = 3
_PART = 500

LEFT_OUT = "a sum of the others would be too low"


@dataclass(frozen=True, slots=True)
class Flawed:
    """Rows of an answer that cannot be used as values, identified by `id`: the reading keeps the rows alive."""

    histograms: frozenset[int] = frozenset()
    late: frozenset[int] = frozenset()
    twins: frozenset[int] = frozenset()
    """Rows that share all labels with another row."""

    def __bool__(self) -> bool:
        return bool(self.histograms or self.late or self.twins)


class ExternalReading:
    """Rows of an external metric at one moment, which never change; each requester's part is stored once it is made.

    A thousand selectors on ten thousand rows would be ten million comparisons per refresh, so rows are indexed by the
    labels that requesters select by while the reading is built.
    """

    def __init__(
        self,
        planned: PlannedQuery,
        evaluated: Evaluation,
        rows: Sequence[Row],
        index: RowIndex,
        flawed: Flawed | None = None,
        namespace_label: str | None = None,
        long_characters: int = 0,
    ) -> None:
        """`namespace_label` is the label that contains the namespace; None if the rule names none.

        `long_characters` are those by which the labels of rows are longer than ordinary ones.
        """
        self.evaluated = evaluated
        self._planned = planned
        self._rows = rows
        self._index = index
        self._flawed = flawed or Flawed()
        self._namespace_label = namespace_label
        self._long_characters = long_characters
        self._made: dict[tuple[str | None, Selector], tuple[Row, ...] | Failure] = {}
        self._foreign: dict[tuple[str | None, Selector], str] = {}
        self._aged: set[tuple[str | None, Selector]] = set()
        self.times: ExternalReading | None = None
        """The times (Unix seconds) of the samples of its series; None if the rule does not limit their age. It is set
        before the reading is passed on. """
        self.silent: SilentRows | None = None
        """Series that fell silent, including those without a sample in Prometheus; set at the same time as `times`."""
        self.steady_seconds = 0.0
        """For how many seconds Prometheus had been up at that moment; set before the reading is passed on."""

    def answer(
        self, namespace: str | None, selector: Selector, count: Callable[[Counter[Dropped]], None]
    ) -> tuple[Row, ...]:
        """Return a requester's rows; `count` is called with the dropped ones, once for each requester.

        Rows are folded first and dropped afterwards: the exact query would have included a NaN in the sum. If no row is
        finite, there is no data. If some are and others are not, it is an error: an HPA sums the rows, and a sum
        without some of them would be too low. Raises PartialAnswerError, AmbiguousSamplesError if two rows have the
        same labels, and UnanswerableSelectorError for a selector that cannot be evaluated.
        """
        made = self._made.get((namespace, selector))
        if made is None:
            made = self._made[namespace, selector] = self._make(namespace, selector, count)
        if isinstance(made, Failure):
            raise made.to_error()
        return made

    def foreign(self, namespace: str | None, selector: Selector, count: Callable[[Counter[Dropped]], None]) -> str:
        """Return why some of a requester's rows must not be served; empty if none is from another namespace.

        Only rows that the exact query would return are examined: a wide answer contains everybody's rows, and being
        among them does not make a row the requester's. `count` is called with such rows, once for each requester.
        Raises UnanswerableSelectorError.
        """
        label = self._namespace_label
        if label is None or namespace is None:
            return ""
        reason = self._foreign.get((namespace, selector))
        if reason is None:
            rows = self._selected_rows(namespace, selector)
            others = [row for row in rows if row.labels.get(label, namespace) != namespace]
            reason = _foreign_series_text(label, namespace, others) if others else ""
            self._foreign[namespace, selector] = reason
            if others:
                count(Counter({Dropped.FOREIGN_NAMESPACE: len(others)}))
        return reason

    def has_no_data(self, namespace: str | None, selector: Selector) -> bool:
        """Return whether Prometheus certainly has nothing for a requester. Raises UnanswerableSelectorError."""
        if self._flawed and any(id(row) in self._flawed.late for row in self._selected_rows(namespace, selector)):
            return False
        return all(math.isnan(row.value) for row in self._select(namespace, selector))

    def is_late(self, namespace: str | None, selector: Selector) -> bool:
        """Return whether a requester's rows arrived, but all of them too late. Raises UnanswerableSelectorError."""
        came = self._selected_rows(namespace, selector) if self._flawed.late else ()
        return bool(came) and all(id(row) in self._flawed.late for row in came)

    def sample_age(self, namespace: str | None, selector: Selector, hold_seconds: float = 0.0) -> float | None:
        """Return how old the samples of a requester's rows were at the evaluation, in seconds; None if there were none.

        The age of a series is that of its newest sample, and the oldest of the series counts. Series that fell silent
        and have disappeared from Prometheus count for `hold_seconds` after their last sample. Raises
        UnanswerableSelectorError.
        """
        moments = [*self._known_moments(namespace, selector), *self._silent_moments(namespace, selector, hold_seconds)]
        newest = self.silent.newest_of_others(namespace) if self.silent else None
        if newest is not None and newest >= self.evaluated.wall - hold_seconds:
            moments.append(newest)
        return self.evaluated.wall - min(moments) if moments else None

    def lacks_silent(
        self, namespace: str | None, selector: Selector, hold_seconds: float, look_back_seconds: float
    ) -> bool:
        """Return whether a requester's rows lack a series that fell silent, because Prometheus no longer knows it.

        Only series that are remembered one by one can be seen to be lacking. `look_back_seconds` is how long Prometheus
        should know a series. Raises UnanswerableSelectorError.
        """
        latest = self.evaluated.wall - look_back_seconds
        old = {moment for moment in self._silent_moments(namespace, selector, hold_seconds) if moment <= latest}
        # Its look-back may be longer than what it was said to be.
        return bool(old) and not old.issubset(self._known_moments(namespace, selector))

    def is_first_aged(self, namespace: str | None, selector: Selector) -> bool:
        """Note that a requester's rows are too old; return whether that was new, so that it counts once."""
        before = len(self._aged)
        self._aged.add((namespace, selector))
        return len(self._aged) > before

    def rows(self, namespace: str | None, selector: Selector) -> Sequence[Row]:
        """Return a requester's rows as received, also those that are not finite. Raises UnanswerableSelectorError."""
        return self._select(namespace, selector)

    def all_rows(self) -> Sequence[Row]:
        """Return all received rows, those of every requester."""
        return self._rows

    @property
    def long_characters(self) -> int:
        """By how many characters the labels of its rows, with those of their times, are longer than ordinary ones."""
        return self._long_characters + (0 if self.times is None else self.times.long_characters)

    def pieces(self) -> list[Sized]:
        """Return its parts, so that they can be freed one by one."""
        own: list[Sized] = [self._rows[start : start + _PART] for start in range(0, len(self._rows), _PART)]
        return own if self.times is None else own + self.times.pieces()

    def _known_moments(self, namespace: str | None, selector: Selector) -> list[float]:
        """Return the times of the samples of a requester's series that Prometheus knows."""
        return [row.value for row in self.times.rows(namespace, selector)] if self.times else []

    def _silent_moments(self, namespace: str | None, selector: Selector, hold_seconds: float) -> list[float]:
        """Return the times of the last samples of a requester's silent series, for `hold_seconds` after them."""
        since = self.evaluated.wall - hold_seconds
        silent = self.silent.moments(namespace, selector) if self.silent else ()
        return [moment for moment in silent if moment >= since]

    def _make(
        self, namespace: str | None, selector: Selector, count: Callable[[Counter[Dropped]], None]
    ) -> tuple[Row, ...] | Failure:
        came = self._selected_rows(namespace, selector) if self._flawed else ()
        refused = self._flaw(came)
        if refused is not None:
            return refused
        if self.is_late(namespace, selector):
            return ()
        rows = self._select(namespace, selector)
        usable = tuple(row for row in rows if fits_milli_units(row.value))
        if len(usable) == len(rows):
            return usable
        if any(math.isfinite(row.value) for row in rows):
            return _unusable(rows)
        count(Counter(flaw_of_number(row.value) for row in rows))
        return ()

    def _flaw(self, rows: Sequence[Row]) -> Failure | None:
        """Return why these rows, as received, cannot be summed although each of them may be right."""
        flawed = self._flawed
        twins = [row for row in rows if id(row) in flawed.twins]
        if twins:
            reason = (
                f"{len(twins)} series {agreeing(len(twins), 'has', 'have')} the same labels as another "
                f"({_first_series(twins)}): a sum would count them twice"
            )
            return Failure(
                AmbiguousSamplesError, f"{reason}; query a server that merges its replicas, or aggregate them"
            )
        histograms = [row for row in rows if id(row) in flawed.histograms]
        if histograms:
            have = agreeing(len(histograms), "has", "have")
            which = _first_series(histograms)
            reason = f"{len(histograms)} of {len(rows)} series {have} no value ({which}), and {LEFT_OUT}"
            return Failure(PartialAnswerError, f"{reason}: {HISTOGRAMS}")
        late = [row for row in rows if id(row) in flawed.late]
        if late and len(late) < len(rows):
            reason = f"{len(late)} of {len(rows)} series {agreeing(len(late), 'is', 'are')} left out, and {LEFT_OUT}: "
            reason += OF_ANOTHER_TIME
            return Failure(PartialAnswerError, reason)
        return None

    def _select(self, namespace: str | None, selector: Selector) -> Sequence[Row]:
        """Return a requester's rows, folded, without those that are late."""
        rows = self._selected_rows(namespace, selector)
        if self._flawed.late:
            rows = [row for row in rows if id(row) not in self._flawed.late]
        return rows if self._planned.fold is None else fold_rows(self._planned.fold, rows)

    def _selected_rows(self, namespace: str | None, selector: Selector) -> Sequence[Row]:
        """Return received rows that a requester's namespace and selector match. Raises UnanswerableSelectorError."""
        planned = self._planned
        if planned.kind is PlanKind.EXACT:
            return self._rows
        try:
            return self._index.select(planned.namespace_label, namespace, selector)
        except RenderError as error:
            raise UnanswerableSelectorError(str(error)) from error


def _foreign_series_text(label: str, namespace: str, others: Sequence[Row]) -> str:
    return (
        f"{len(others)} series {agreeing(len(others), 'carries', 'carry')} another namespace, "
        f"{label}={others[0].labels[label]!r} instead of {namespace!r}: "
        f"{FOREIGN_REPAIR}"
    )


def _unusable(rows: Sequence[Row]) -> Failure:
    """Return why rows cannot be summed if some, but not all, have finite values that autoscalers can read."""
    large = [row for row in rows if math.isfinite(row.value) and not fits_milli_units(row.value)]
    if large:
        shown = "; ".join(f"{as_series(row.labels)} is {row.value}" for row in large[:_SHOWN_ROWS])
        are = agreeing(len(large), "is", "are")
        reason = f"{len(large)} of {len(rows)} series {are} too large ({shown}): {BEYOND_MILLI_UNITS}"
        return Failure(PartialAnswerError, f"{reason}; divide them in the rule's metricsQuery")
    bad = [row for row in rows if not math.isfinite(row.value)]
    shown = "; ".join(f"{as_series(row.labels)} is {row.value}" for row in bad[:_SHOWN_ROWS])
    have = agreeing(len(bad), "has", "have")
    reason = f"{len(bad)} of {len(rows)} series {have} no finite value ({shown}): {LEFT_OUT}"
    return Failure(PartialAnswerError, f"{reason}; aggregate or filter them in the rule's metricsQuery")


def _first_series(rows: Sequence[Row]) -> str:
    return "; ".join(as_series(row.labels) for row in rows[:_SHOWN_ROWS])
