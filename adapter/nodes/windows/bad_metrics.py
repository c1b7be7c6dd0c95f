"""The analyser of bad metrics: one verdict per node and resource. A verdict depends only on its own node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.nodes.model.loads import SERVED_VERDICTS, VERDICTS, WINDOWS_SECONDS, NodeVerdict
from adapter.nodes.windows.grid import column_times
from adapter.nodes.windows.statistics import MIN_COVERAGE, last_columns, rank, window_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.samples import SampleGrid

MIN_STALE_SECONDS: Final = 90.0
STUCK_SECONDS: Final = 600.0
MAX_RATIO: Final = 1.02
"""Ratios above 1, up to this, come from clocks that disagree a little, and count as 1."""
JUMP_DEVIATIONS: Final = 6.0
JUMP_EXPLAINED_SECONDS: Final = 300.0
"""How long before a jump a pod may have been bound or have ended and still explain it."""
MIN_DEVIATION_RATIO: Final = 0.005
"""The smallest median deviation by which a jump is judged; otherwise, for a load that hardly ever changes, each percent
would count as a jump."""
# A rounding error of subtracting equal numbers is not a load below zero.
_ROUNDING_RATIO: Final = 1e-9

_SERVED: Final = np.array([verdict in SERVED_VERDICTS for verdict in VERDICTS])


@dataclass(frozen=True, slots=True)
class JudgingTime:
    """When samples are judged."""

    now: float
    """The current time, in Unix seconds."""
    refresh_seconds: float
    window_end: int
    """End of the windows, in Unix seconds."""
    from_file: bool = False
    """Whether the samples come from the file: they are judged as of the time when they were saved, and served with
    their own times until they are older than the window."""


def number(verdict: NodeVerdict) -> int:
    """Return the number that stands for a verdict in arrays."""
    return VERDICTS.index(verdict)


def is_served(verdicts: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Return for which of these verdicts a window may be served."""
    return _SERVED[verdicts]


def last_sample_at(grid: SampleGrid) -> Floats:
    """Return the time of each node's newest sample, in Unix seconds.

    It is the time of the scrape or, if that is not known, of the last step with a sample; NaN if there is none.
    """
    if not grid.values.shape[1]:
        return grid.newest
    present = ~np.isnan(grid.values)
    last = present.shape[1] - 1 - np.argmax(present[:, ::-1], axis=1)
    steps = np.where(present.any(axis=1), column_times(grid)[last], np.nan)
    return np.where(np.isnan(grid.newest), steps, grid.newest)


def stale_after_seconds(scrape_seconds: Floats, step_seconds: int, refresh_seconds: float) -> Floats:
    """Return the age above which a node's newest sample is stale. An unknown scrape interval counts as the step."""
    scrape = np.where(np.isnan(scrape_seconds), float(step_seconds), scrape_seconds)
    return np.maximum(MIN_STALE_SECONDS, 2 * scrape + refresh_seconds)


def out_of_range(values: Floats) -> NDArray[np.bool_]:
    """Return which samples cannot be a utilisation; NaN is not one of them."""
    return (values < -_ROUNDING_RATIO) | (values > MAX_RATIO)


def jumped_at(values: Floats, times: Floats) -> Floats:
    """Return the Unix seconds of the step at which each row left its usual range, if it has not come back; else NaN.

    The usual range is the median of the row, plus and minus six median absolute deviations.
    """
    if not values.shape[1]:
        return np.full(len(values), np.nan)
    counts = (~np.isnan(values)).sum(axis=1)
    distance = np.abs(values - rank(np.sort(values, axis=1), counts, 0.5)[:, None])
    deviation = rank(np.sort(distance, axis=1), counts, 0.5)
    far = distance > JUMP_DEVIATIONS * np.fmax(deviation, MIN_DEVIATION_RATIO)[:, None]
    near = ~np.isnan(values) & ~far
    columns = np.arange(values.shape[1])
    last_near = np.where(near, columns, -1).max(axis=1)
    since = far & (columns > last_near[:, None])
    return np.where(since.any(axis=1), times[np.argmax(since, axis=1)], np.nan)


def _last_present(values: Floats) -> Floats:
    """Return the last number of each row; NaN for none."""
    if not values.shape[1]:
        return np.full(len(values), np.nan)
    last = values.shape[1] - 1 - np.argmax(~np.isnan(values[:, ::-1]), axis=1)
    found: Floats = values[np.arange(len(values)), last]
    return found


def judge(grid: SampleGrid, coverage: Floats, moment: JudgingTime, pod_changed_at: Floats) -> NDArray[np.int8]:
    """Return the verdict of each node, an index of `VERDICTS`.

    `coverage` is the `window_coverage` of the windows, in which samples out of range count as missing: a late scrape
    may cause one such sample, so a node counts as out of range only while its newest sample is. `pod_changed_at` is the
    Unix seconds at which a pod was last bound to each node or ended there (NaN if unknown). If several verdicts fit,
    the first of these counts: missing, stale, stuck, out of range, gap, counter reset, jumped.
    """
    window = last_columns(grid.values, window_columns(grid.step_seconds)[0])
    times = column_times(grid)[-window.shape[1] :] if window.shape[1] else np.empty(0)
    newest = last_sample_at(grid)
    as_of = float(moment.window_end) if moment.from_file else moment.now
    stale = as_of - newest > stale_after_seconds(grid.scrape_seconds, grid.step_seconds, moment.refresh_seconds)
    if moment.from_file:
        stale |= moment.now - newest > WINDOWS_SECONDS[0]
    # The last step about which anything is known: a failed query does not make counters stand still.
    known_until = np.fmin(np.ceil(newest / grid.step_seconds) * grid.step_seconds, moment.window_end)
    begin = jumped_at(np.where(out_of_range(window), np.nan, window), times)
    # A pod that came later than the jump still counts, since only the last one of a node is known.
    explained = pod_changed_at >= begin - JUMP_EXPLAINED_SECONDS
    found = np.full(len(grid.nodes), number(NodeVerdict.FRESH), dtype=np.int8)
    for verdict, applies in (
        (NodeVerdict.JUMPED, ~np.isnan(begin) & ~explained),
        (NodeVerdict.COUNTER_RESET, grid.reset_at > moment.window_end - WINDOWS_SECONDS[0]),
        (NodeVerdict.GAP, (coverage < MIN_COVERAGE).any(axis=0)),
        (NodeVerdict.OUT_OF_RANGE, out_of_range(_last_present(window))),
        (NodeVerdict.STUCK, known_until - grid.advancing >= STUCK_SECONDS),
        (NodeVerdict.STALE, stale),
        (NodeVerdict.MISSING, np.isnan(newest)),
    ):
        found[applies] = number(verdict)
    return found
