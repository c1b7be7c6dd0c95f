"""From the answer to a query to rows by series: which part a series belongs to, and what it says at each step. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from adapter.nodes.model.loads import LoadResource
from adapter.nodes.queries.expressions import ADVANCE, BUSY, IDLE, NEWEST, PART_LABEL, RATIO, RESETS
from adapter.nodes.queries.intervals import from_times, row_medians

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.queries.plan import QueryPiece
    from adapter.sources.prometheus.ranges import RangeSeries

_LEAST_ACCOUNTED, _MOST_ACCOUNTED = 0.9, 1.1
"""All modes of a CPU add up to a second per second. If the usual sum is beyond these bounds, modes are missing."""
_JITTER_BELOW, _JITTER_ABOVE = -0.02, 1.1
"""Rates per second of a device that is busy all the time come out so far from 1 if a scrape is late."""
_UNKNOWN_HOLD_SECONDS = 90.0
_NO_LABELS: Final[dict[str, str]] = {}

Labels: TypeAlias = "frozenset[tuple[str, str]]"


@dataclass(frozen=True, slots=True, eq=False)
class AnswerRows:
    """Series that are to be mapped to nodes; arrays of shape (series, columns) or (series,)."""

    labels: tuple[Mapping[str, str], ...]
    """Of each series, without the metric's name and our own label."""
    values: Floats
    newest: Floats
    """Unix seconds of the newest scraped sample; NaN if unknown."""
    scrape_seconds: Floats
    """As the times of the samples show it; NaN if unknown."""
    advancing: Floats
    reset_at: Floats
    first_known: Floats
    """Unix seconds of the first step at which a counter was seen, advancing or not; NaN for none."""


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """The series of one part: their labels, and a row of samples for each."""

    index: Mapping[Labels, int]
    samples: Floats

    def of(self, keys: Sequence[Labels]) -> Floats:
        """Return the rows of these series; NaN for those that the part does not have."""
        found = np.array([self.index.get(key, -1) for key in keys], dtype=np.intp)
        if not len(self.samples):
            return np.full((len(keys), self.samples.shape[1]), np.nan)
        return np.where((found >= 0)[:, None], self.samples[found], np.nan)


def rows_of(
    resource: LoadResource,
    series: Sequence[RangeSeries],
    piece: QueryPiece,
    scrape_seconds: Mapping[str, float],
    *,
    is_overridden: bool = False,
) -> AnswerRows:
    """Return the rows of an answer. `scrape_seconds` is what is known of the scrape interval, by `instance`."""
    parts = _parts(series, piece)
    keys = list({**parts[IDLE].index, **parts[RATIO].index})
    if resource is LoadResource.CPU and not is_overridden:
        # An exporter that is scraped too rarely for a rate is known all the same, so that its interval is learned.
        keys = list({**dict.fromkeys(keys), **parts[NEWEST].index})
    labels = tuple(dict(key) for key in keys)
    times = np.array(piece.times, dtype=np.float64)
    values, accounted = _values(parts, keys)
    if resource is not LoadResource.GPU and resource is not LoadResource.MEMORY and not is_overridden:
        values = _without_jitter(values)
    scraped = parts[NEWEST].of(keys)
    known = np.array([scrape_seconds.get(one.get("instance", ""), np.nan) for one in labels], dtype=np.float64)
    intervals = np.fmin(from_times(scraped), known)
    if is_overridden:
        # The time of an expression's sample is that of the step, which is nobody's scrape interval.
        intervals = known
    advances = np.where(accounted > 0, times, np.nan)
    return AnswerRows(
        labels=labels,
        values=_without_repeats(values, times, scraped, intervals),
        newest=_last(scraped),
        scrape_seconds=intervals,
        advancing=_last(advances),
        reset_at=_last(np.where(_begins(parts[RESETS].of(keys)), times, np.nan)),
        first_known=-_last(-np.where(np.isnan(accounted), np.nan, times)),
    )


def _parts(series: Sequence[RangeSeries], piece: QueryPiece) -> dict[str, _Part]:
    """Return the samples of each part on the steps of the piece."""
    by_part: dict[str, list[RangeSeries]] = {name: [] for name in (RATIO, IDLE, BUSY, ADVANCE, NEWEST, RESETS)}
    for one in series:
        if (part := by_part.get(one.labels.get(PART_LABEL, ""))) is not None:
            part.append(one)
    return {name: _Part(_index(found), _matrix(found, piece)) for name, found in by_part.items()}


def _index(series: Sequence[RangeSeries]) -> dict[Labels, int]:
    return {
        frozenset(item for item in one.labels.items() if item[0] not in {PART_LABEL, "__name__"}): row
        for row, one in enumerate(series)
    }


def _matrix(series: Sequence[RangeSeries], piece: QueryPiece) -> Floats:
    samples = np.full((len(series), piece.columns), np.nan)
    if series:
        lengths = [len(one.timestamps) for one in series]
        times = np.concatenate([np.frombuffer(one.timestamps) for one in series])
        columns = np.rint((times - piece.first) / piece.step_seconds).astype(np.intp)
        values = np.concatenate([np.frombuffer(one.values) for one in series])
        # An infinite value is no sample of a utilisation.
        samples[np.repeat(np.arange(len(series)), lengths), columns] = np.where(np.isfinite(values), values, np.nan)
    return samples


def _values(parts: Mapping[str, _Part], keys: Sequence[Labels]) -> tuple[Floats, Floats]:
    """Return the utilisation of each series, and what all modes of its CPUs add up to (NaN if unknown)."""
    ratio, idle, busy = (parts[name].of(keys) for name in (RATIO, IDLE, BUSY))
    accounted = idle + busy
    usual = row_medians(accounted)
    # Judged by row: after a reset or a late scrape the sum is another one, and the share of idle is right all the same.
    all_modes = ((usual >= _LEAST_ACCOUNTED) & (usual <= _MOST_ACCOUNTED))[:, None] & (accounted > 0)
    measured = 1 - np.divide(idle, accounted, out=idle.copy(), where=all_modes)
    # Counters that stand still say nothing.
    measured = np.where(accounted == 0, np.nan, measured)
    return np.where(np.isnan(ratio), measured, ratio), np.fmax(accounted, parts[ADVANCE].of(keys))


def _without_jitter(values: Floats) -> Floats:
    late = (values > 1) & (values <= _JITTER_ABOVE)
    return np.where(late, 1.0, np.where((values < 0) & (values >= _JITTER_BELOW), 0.0, values))


def _without_repeats(values: Floats, times: Floats, newest: Floats, scrape_seconds: Floats) -> Floats:
    """Return the values without those at steps that only repeat an old sample: more than one scrape failed before."""
    hold = np.where(np.isnan(scrape_seconds), _UNKNOWN_HOLD_SECONDS, 2 * scrape_seconds)
    step = times[1] - times[0] if len(times) > 1 else 0.0
    return np.where(times[None, :] - newest > np.maximum(hold, step)[:, None], np.nan, values)


def _begins(resets: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Return the steps at which a reset comes into the range of the function; it stays there for some steps."""
    seen = resets > 0
    seen[:, 1:] &= ~(resets[:, :-1] > 0)
    return seen


def _last(times: Floats) -> Floats:
    """Return the largest of each row; NaN for a row without a number."""
    found: Floats = np.fmax.reduce(times, axis=1, initial=np.nan)
    return found
