"""The usual sum of the modes of each CPU, which shows whether an exporter leaves out modes.

A refresh asks for a few steps only. After an outage of Prometheus, rates cover a part of their range in all of them,
and a late scrape makes all of them too large or too small: in these steps alone, an exporter with all modes looks like
one that leaves some out. So the sums of earlier refreshes count too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.nodes.queries.answer_rows import accounted_of
from adapter.nodes.queries.scrape_intervals import row_medians

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.queries.answer_rows import SeriesLayout

KEPT_STEPS: Final = 20
"""Five minutes: more than twice the steps that an outage can spoil."""
LEAST_STEPS: Final = 8
"""With fewer sums, nothing is usual yet: before and after an outage, two steps each may be spoilt."""


class UsualSums:
    """The sums of the steps that were last requested, for the rows of the last answer. For one thread."""

    def __init__(self) -> None:
        self._layout: SeriesLayout | None = None
        self._sums: dict[int, Floats] = {}
        """By step, in the order of the requests: the sum of each row; NaN where it says nothing."""

    def with_answer(
        self, layout: SeriesLayout, samples: Floats, times: Iterable[int], *, is_partial: bool = False
    ) -> Floats:
        """Add the sums of an answer; return the usual sum of each of its rows, NaN where too few are known.

        A partial answer is not added. No sum of it is usual: one that differs lacks modes, whatever it was before.
        """
        if is_partial:
            return np.full(len(layout.labels), np.nan)
        if self._layout is not layout:
            self._follow(layout)
        sums = _telling_sums(layout, samples)
        for time, column in zip(times, sums.T, strict=True):
            before = self._sums.pop(time, None)
            if before is not None or not np.isnan(column).all():
                self._sums[time] = column
        for time in tuple(self._sums)[:-KEPT_STEPS]:
            del self._sums[time]
        if not self._sums:
            return np.full(len(layout.labels), np.nan)
        return _usual(np.stack(tuple(self._sums.values()), axis=1))

    def of_the_past(self, layout: SeriesLayout, samples: Floats) -> Floats:
        """Return the usual sum of each row of an answer about the past, which is not added; NaN where it is unknown.

        An answer of many steps shows the sums of its own time. One of few may be about nothing but the slots at both
        ends of an outage, which are spoilt; then the sums of the steps that were last requested count.
        """
        found = _usual(_telling_sums(layout, samples))
        is_unknown = np.isnan(found)
        if not self._sums or not is_unknown.any():
            return found
        latest = np.append(_usual(np.stack(tuple(self._sums.values()), axis=1)), np.nan)
        return np.where(is_unknown, latest[self._places(layout)], found)

    def _follow(self, layout: SeriesLayout) -> None:
        """Put the sums into the order of another layout, whose new rows have none."""
        rows = self._places(layout)
        self._sums = {time: np.append(column, np.nan)[rows] for time, column in self._sums.items()}
        self._layout = layout

    def _places(self, layout: SeriesLayout) -> NDArray[np.intp]:
        """Return the place of each row of another layout in the sums; -1 for a row that they lack."""
        return np.full(len(layout.labels), -1) if self._layout is None else self._layout.places_of(layout)


def _telling_sums(layout: SeriesLayout, samples: Floats) -> Floats:
    """Return the sum of all modes of each row's CPUs; NaN where it does not show which modes there are."""
    sums = accounted_of(layout, samples)
    # Counters that stand still do not show it; neither does an overflowing sum.
    found: Floats = np.where((sums > 0) & np.isfinite(sums), sums, np.nan)
    return found


def _usual(sums: Floats) -> Floats:
    """Return the usual sum of each row; NaN where too few are known."""
    enough = np.count_nonzero(~np.isnan(sums), axis=1) >= LEAST_STEPS
    found: Floats = np.where(enough, row_medians(sums), np.nan)
    return found
