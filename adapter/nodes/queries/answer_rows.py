"""Turns the answer to a query into rows, each of which combines the parts that have the same labels. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from adapter.foundation.objects.shared_texts import shared_text
from adapter.nodes.exporters.claims import exporter_text
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.queries.expressions import ADVANCE, BUSY, CPUS, IDLE, NEWEST, PART_LABEL, RATIO, RESETS
from adapter.nodes.queries.scrape_intervals import from_times
from adapter.nodes.windows.grid import repeated_seconds
from adapter.nodes.windows.node_rows import SeriesRows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.queries.query_steps import QueryPiece

_LEAST_ACCOUNTED, _MOST_ACCOUNTED = 0.9, 1.1
"""Bounds of the usual sum of a CPU's modes, which should be one second per second; outside them, modes are missing."""
_JITTER_BELOW, _JITTER_ABOVE = -0.02, 1.1
"""Values outside 0..1 but within these bounds result from late scrapes, and count as 0 or 1."""
_NOT_OF_A_ROW: Final = frozenset({PART_LABEL, "__name__"})

Labels: TypeAlias = "frozenset[tuple[str, str]]"


@dataclass(frozen=True, slots=True, eq=False)
class AnswerRows(SeriesRows):
    """Series that are to be mapped to nodes."""

    labels: tuple[Mapping[str, str], ...]
    """Labels of each series, without the metric's name and our own label."""
    first_known: Floats
    """Unix seconds of the first step at which a counter was seen, advancing or not; NaN for none."""
    cpus: Floats
    """The number of CPUs that each value is about, of the shape of the values; NaN where it is not known."""


@dataclass(frozen=True, slots=True, eq=False)
class SeriesLayout:
    """Which series of an answer are the parts of each row. The layout stays the same as long as the series do."""

    digest: bytes
    """Digest of the answer's series (`SeriesNames.digest`)."""
    labels: tuple[Mapping[str, str], ...]
    """Labels of each row, without the metric's name and our own label."""
    places: Mapping[str, NDArray[np.intp]]
    """By part, the place of each row's series in the answer; -1 for a row without a series for the part."""

    def part(self, name: str, samples: Floats) -> Floats:
        """Return the samples of one part for each row; NaN where the row has no series for that part."""
        places = self.places[name]
        if not len(samples):
            return np.full((len(places), samples.shape[1]), np.nan)
        return np.where((places >= 0)[:, None], samples[places], np.nan)

    def places_of(self, other: SeriesLayout) -> NDArray[np.intp]:
        """Return the place in this layout of each row of another one; -1 for a row that this one lacks."""
        places = {frozenset(labels.items()): place for place, labels in enumerate(self.labels)}
        return np.array([places.get(frozenset(labels.items()), -1) for labels in other.labels], dtype=np.intp)


def layout_of(
    digest: bytes, labels: Sequence[Mapping[str, str]], resource: LoadResource, *, is_overridden: bool = False
) -> SeriesLayout:
    """Return the layout of an answer whose series have these labels."""
    parts: dict[str, dict[Labels, int]] = {name: {} for name in (RATIO, IDLE, BUSY, ADVANCE, NEWEST, RESETS, CPUS)}
    for place, one in enumerate(labels):
        if (part := parts.get(one.get(PART_LABEL, ""))) is not None:
            part[frozenset(item for item in one.items() if item[0] not in _NOT_OF_A_ROW)] = place
    keys = {**parts[IDLE], **parts[RATIO]}
    if resource is LoadResource.CPU and not is_overridden:
        # An exporter that is scraped too rarely for a rate still counts, so that its interval is learned.
        keys |= parts[NEWEST]
    return SeriesLayout(
        digest,
        # The answers of all resources have the same labels, and nearly all rows have the same job.
        tuple({name: shared_text(value) for name, value in key} for key in keys),
        {name: np.array([part.get(key, -1) for key in keys], dtype=np.intp) for name, part in parts.items()},
    )


def rows_of(
    resource: LoadResource,
    layout: SeriesLayout,
    samples: Floats,
    piece: QueryPiece,
    scrape_seconds: Mapping[str, float],
    usual_sums: Floats,
    *,
    is_overridden: bool = False,
) -> AnswerRows:
    """Return the rows of an answer. `scrape_seconds` are the known scrape intervals (`Survey.scrape_seconds`).

    `usual_sums` are what the modes of each row's CPUs usually add up to, NaN where that is not known yet.
    """
    # An infinite value is not a utilisation.
    samples = np.where(np.isfinite(samples), samples, np.nan)
    times = np.array(piece.times, dtype=np.float64)
    values, accounted = _values(layout, samples, usual_sums)
    if resource is not LoadResource.GPU and resource is not LoadResource.MEMORY and not is_overridden:
        values = _without_jitter(values)
    scraped = layout.part(NEWEST, samples)
    known = np.fromiter(
        (
            scrape_seconds.get(exporter_text(one), scrape_seconds.get(one.get("instance", ""), np.nan))
            for one in layout.labels
        ),
        np.float64,
        len(layout.labels),
    )
    intervals = np.fmin(from_times(scraped), known)
    if is_overridden:
        # The time of an expression's sample is that of the step, which says nothing about scrape intervals.
        intervals = known
    advances = np.where(accounted > 0, times, np.nan)
    return AnswerRows(
        labels=layout.labels,
        values=_without_repeats(values, times, scraped, intervals),
        newest=_last(scraped),
        scrape_seconds=intervals,
        advancing=_last(advances),
        reset_at=_last(np.where(_begins(layout.part(RESETS, samples)), times, np.nan)),
        first_known=-_last(-np.where(np.isnan(accounted), np.nan, times)),
        cpus=layout.part(CPUS, samples),
    )


def accounted_of(layout: SeriesLayout, samples: Floats) -> Floats:
    """Return the sum of all modes of each row's CPUs, in CPU seconds per second; NaN where it is not known."""
    with np.errstate(over="ignore"):
        return layout.part(IDLE, samples) + layout.part(BUSY, samples)


def _values(layout: SeriesLayout, samples: Floats, usual: Floats) -> tuple[Floats, Floats]:
    """Return the utilisation of each row, and the sum of all modes of its CPUs (NaN if unknown)."""
    ratio, idle = layout.part(RATIO, samples), layout.part(IDLE, samples)
    accounted = accounted_of(layout, samples)
    # This is judged by row: after a reset or a late scrape the sum differs, but the share of idle is still right.
    # No share is known of a sum beyond the largest number.
    shared = (accounted > 0) & np.isfinite(accounted)
    is_young = np.isnan(usual)[:, None]
    complete = np.where(is_young, _is_complete(accounted), _is_complete(usual)[:, None])
    all_modes = complete & shared
    measured = 1 - np.divide(idle, accounted, out=idle.copy(), where=all_modes)
    # Counters that stand still say nothing. Nor does a sum that differs before it is known which one is usual: either
    # modes are missing, or the rates cover only a part of their range.
    measured = np.where((accounted == 0) | (is_young & shared & ~complete), np.nan, measured)
    return np.where(np.isnan(ratio), measured, ratio), np.fmax(accounted, layout.part(ADVANCE, samples))


def _is_complete(sums: Floats) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (sums >= _LEAST_ACCOUNTED) & (sums <= _MOST_ACCOUNTED)
    return found


def _without_jitter(values: Floats) -> Floats:
    late = (values > 1) & (values <= _JITTER_ABOVE)
    return np.where(late, 1.0, np.where((values < 0) & (values >= _JITTER_BELOW), 0.0, values))


def _without_repeats(values: Floats, times: Floats, newest: Floats, scrape_seconds: Floats) -> Floats:
    """Return the values with NaN at steps that only repeat an old sample, because more than one scrape has failed."""
    step = times[1] - times[0] if len(times) > 1 else 0.0
    hold = repeated_seconds(scrape_seconds, step)
    # A failed scrape ends the samples of its target, but not yet the rates over them.
    seen = np.fmax.accumulate(newest, axis=1)
    # Before the first sample of a row, rates are of samples before the piece. A row may show no samples at all.
    seen = np.where(np.isnan(seen) & ~np.isnan(seen[:, -1:]), -np.inf, seen)
    return np.where(times[None, :] - seen > hold[:, None], np.nan, values)


def _begins(resets: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Return the steps at which a counter reset enters the function's range, in which it then stays for some steps."""
    seen = resets > 0
    seen[:, 1:] &= ~(resets[:, :-1] > 0)
    return seen


def _last(times: Floats) -> Floats:
    """Return the latest time of each row; NaN for a row without any."""
    found: Floats = np.fmax.reduce(times, axis=1, initial=np.nan)
    return found
