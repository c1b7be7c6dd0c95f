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
    from collections.abc import Iterable, Mapping

    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.queries.answer_rows import Labels, SeriesLayout

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

    def with_answer(self, layout: SeriesLayout, samples: Floats, times: Iterable[int]) -> Floats:
        """Add the sums of an answer; return the usual sum of each of its rows, NaN where too few are known."""
        if self._layout is not layout:
            self._follow(layout)
        sums = accounted_of(layout, samples)
        # Counters that stand still do not show which modes there are, nor does a sum beyond the largest number.
        sums = np.where((sums > 0) & np.isfinite(sums), sums, np.nan)
        for time, column in zip(times, sums.T, strict=True):
            before = self._sums.pop(time, None)
            if before is not None or not np.isnan(column).all():
                self._sums[time] = column
        for time in tuple(self._sums)[:-KEPT_STEPS]:
            del self._sums[time]
        if not self._sums:
            return np.full(len(layout.labels), np.nan)
        kept = np.stack(tuple(self._sums.values()), axis=1)
        enough = np.count_nonzero(~np.isnan(kept), axis=1) >= LEAST_STEPS
        found: Floats = np.where(enough, row_medians(kept), np.nan)
        return found

    def _follow(self, layout: SeriesLayout) -> None:
        """Put the sums into the order of another layout, whose new rows have none."""
        if self._layout is not None:
            places = {_key(labels): place for place, labels in enumerate(self._layout.labels)}
            rows = np.array([places.get(_key(labels), -1) for labels in layout.labels], dtype=np.intp)
            self._sums = {time: np.append(column, np.nan)[rows] for time, column in self._sums.items()}
        self._layout = layout


def _key(labels: Mapping[str, str]) -> Labels:
    return frozenset(labels.items())
