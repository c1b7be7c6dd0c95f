"""The past load of one recommendation, by target."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from recommender.decisions.targets.fair_order import in_fair_order
from recommender.kinds.predictive.cycle_length import stretched_history
from recommender.kinds.predictive.history import DAY_SECONDS, LoadHistory
from recommender.running.loads.histories.sample_ring import ROWS_A_BLOCK, SampleRing, Samples, Span
from recommender.running.loads.histories.sample_times import index_at, nearest_index, step_of, steps_of
from recommender.running.loads.histories.target_loads import LoadSeriesError, Target, target_of
from recommender.running.loads.load_telemetry import Coverage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from adapter.foundation.sources.prometheus.answers.ranges import RangeSeries
    from recommender.kinds.predictive.arrays import BoolArray, FloatArray, IntArray
    from recommender.running.loads.load_needs import LoadNeed

DOUBTED_SECONDS = 7_200.0
"""How late samples may arrive, for example by remote write after an outage."""
SET_BACK_SECONDS = 300.0
"""A poll this long before the newest grid time shows that the clock was ahead, and not just corrected slightly."""
FORGOTTEN_SECONDS = DAY_SECONDS
"""How long a target without a series keeps its history, unless other targets need the place sooner."""


class TargetHistory:
    """The history of the targets of one recommendation. For any number of threads."""

    def __init__(self, need: LoadNeed, series: int) -> None:
        """`series` is the initial number of targets."""
        self.need = need
        self.is_downloaded = False
        """Whether everything that was missing has been requested at least once."""
        history = need.settings.history_seconds
        self.step_seconds = step_of(history, need.poll_interval_seconds, series)
        block = 1 if need.settings.for_each is None else ROWS_A_BLOCK
        self._ring = SampleRing(steps_of(history, self.step_seconds), block)
        self._rows: dict[Target, int] = {}
        self._seen: dict[Target, int] = {}
        """The number of the grid time at which a target last had a series, by target."""
        self._lock = threading.Lock()

    def note(self, values: Mapping[Target, float], time: float) -> None:
        """Take the loads of one poll; only those of the first poll after a grid time become its samples."""
        index = index_at(time, self.step_seconds)
        with self._lock:
            self._follow_clock(index)
            self._ring.advance(index)
            self._make_room(values)
            for target in values:
                if target not in self._rows:
                    self._rows[target] = self._ring.add_row()
                self._seen[target] = index
            is_near = time - index * self.step_seconds <= max(self.step_seconds / 2, self.need.poll_interval_seconds)
            if is_near and self._ring.missing_spans(index, index, index + 1):
                self._ring.put_at(index, [self._rows[target] for target in values], list(values.values()))
            self._forget_gone(index)

    def missing_times(self, now: float) -> list[Span]:
        """Return the grid times that have not been requested from Prometheus yet, oldest first.

        The newest grid time is left out, since the next poll provides its sample.
        """
        last = index_at(now, self.step_seconds) - 1
        with self._lock:
            self._ring.advance(last)
            doubted = last - int(DOUBTED_SECONDS / self.step_seconds)
            return self._ring.missing_spans(self._ring.oldest, last, doubted)

    def fill(self, span: Span, series: Iterable[RangeSeries]) -> None:
        """Take the answer to a range query over a span.

        A target may have had several series one after another. If it had two at a time, its load is unknown.
        """
        found = self._samples_of(series)
        with self._lock:
            for target, (numbers, values) in found.items():
                row = self._rows.get(target)
                if row is not None:
                    self._ring.put(row, numbers, values)
            self._ring.note_requested(*span)

    def history(self, targets: Sequence[Target], now: float, seconds: float | None = None) -> LoadHistory:
        """Return a copy of the samples of targets up to the grid time nearest to `now`, in the time of models.

        `seconds`, in the time of models, limits how far the samples reach back; with None, they begin with the first
        known sample of any of the targets.
        """
        stretch = self.need.settings.stretch
        with self._lock:
            last = nearest_index(now, self.step_seconds)
            rows = [self._rows.get(target, -1) for target in targets]
            known = [first for row in rows if (first := self._ring.first_known(row)) is not None]
            first = min([*known, last])
            if seconds is not None:
                first = max(first, last - int(np.ceil(seconds / stretch / self.step_seconds)))
            values = np.full((len(rows), last - first + 1), np.nan)
            present = [place for place, row in enumerate(rows) if row >= 0]
            values[present] = self._ring.window([rows[place] for place in present], first, last)
        return stretched_history(LoadHistory(first * self.step_seconds, self.step_seconds, values), stretch)

    def known_seconds(self, targets: Sequence[Target], now: float) -> FloatArray:
        """Return for how long the load of each target has been known, in seconds of the time of models."""
        last = nearest_index(now, self.step_seconds)
        with self._lock:
            firsts = [self._ring.first_known(self._rows.get(target, -1)) for target in targets]
        model_step_seconds = self.step_seconds * self.need.settings.stretch
        return np.array([0.0 if first is None else (last - first) * model_step_seconds for first in firsts])

    def largest(self, targets: Sequence[Target], now: float) -> FloatArray:
        """Return the largest known load of each target; NaN where none is known."""
        last = nearest_index(now, self.step_seconds)
        found = np.full(len(targets), np.nan)
        with self._lock:
            for place, row in enumerate(self._rows.get(target, -1) for target in targets):
                first = self._ring.first_known(row)
                if first is not None:
                    # Targets are processed one after another: many long histories at a time would need much memory.
                    found[place] = np.fmax.reduce(self._ring.window([row], first, last)[0], initial=np.nan)
        return found

    def targets(self) -> tuple[Target, ...]:
        """Return the targets that have a row."""
        with self._lock:
            return tuple(self._rows)

    @property
    def size_bytes(self) -> int:
        """The size of the samples in bytes."""
        return len(self._rows) * self._ring.steps * 4

    def coverage(self, now: float) -> Coverage:
        """Return how much of the history is available."""
        lacking = sum(last - first + 1 for first, last in self.missing_times(now))
        targets = self.targets()
        seconds = float(self.known_seconds(targets, now).max(initial=0.0)) / self.need.settings.stretch
        with self._lock:
            samples = self._ring.known_samples()
        return Coverage(samples, len(targets), seconds, lacking * self.step_seconds)

    def requested_times(self) -> tuple[int, BoolArray]:
        """Return the number of the oldest grid time, and whether each grid time from there on has been requested."""
        with self._lock:
            if self._ring.newest is None:
                return 0, np.zeros(0, dtype=np.bool_)
            return self._ring.oldest, self._ring.requested_at(self._ring.oldest, self._ring.newest)

    def rows(self, targets: Sequence[Target], first: int, last: int) -> Samples:
        """Return the samples of targets between two grid times, shape (targets, steps)."""
        with self._lock:
            rows = [self._rows.get(target, -1) for target in targets]
            found = np.full((len(rows), last - first + 1), np.nan, dtype=np.float32)
            present = [place for place, row in enumerate(rows) if row >= 0]
            found[present] = self._ring.window([rows[place] for place in present], first, last)
            return found

    def restore(self, first: int, asked: BoolArray) -> None:
        """Restore which grid times were requested, from number `first` on. Call this before `restore_rows`."""
        with self._lock:
            self._ring.advance(first + len(asked) - 1)
            for place in np.flatnonzero(asked):
                self._ring.note_requested(first + int(place), first + int(place))

    def restore_rows(self, first: int, targets: Sequence[Target], values: Samples) -> None:
        """Restore stored samples, shape (targets, steps), from the grid time of number `first` on."""
        numbers = np.arange(first, first + values.shape[1], dtype=np.int64)
        with self._lock:
            for target, samples in zip(targets, values, strict=True):
                if target not in self._rows:
                    self._rows[target] = self._ring.add_row()
                self._seen.setdefault(target, int(numbers[-1]))
                self._ring.put(self._rows[target], numbers, _loads(samples.astype(np.float64)))

    def _samples_of(self, series: Iterable[RangeSeries]) -> dict[Target, tuple[IntArray, FloatArray]]:
        """Return the numbers of grid times and the values at them, by target; NaN where a target has several values."""
        parts: dict[Target, list[RangeSeries]] = {}
        for one in series:
            with suppress(LoadSeriesError):
                parts.setdefault(target_of(one.labels, self.need.settings.for_each), []).append(one)
        found = {}
        for target, ones in parts.items():
            times = np.concatenate([np.asarray(one.timestamps) for one in ones])
            values = np.concatenate([_loads(np.asarray(one.values)) for one in ones])
            numbers, places, counts = np.unique(
                np.rint(times / self.step_seconds).astype(np.int64), return_index=True, return_counts=True
            )
            found[target] = numbers, np.where(counts == 1, values[places], np.nan)
        return found

    def _follow_clock(self, index: int) -> None:
        """If the clock was ahead, forget everything, so that it is downloaded again: the ring only moves forward."""
        newest = self._ring.newest
        if newest is not None and (newest - index) * self.step_seconds > max(SET_BACK_SECONDS, 2 * self.step_seconds):
            self._ring.clear()
            self._seen = {target: min(seen, index) for target, seen in self._seen.items()}
            self.is_downloaded = False

    def _make_room(self, present: Collection[Target]) -> None:
        """Forget ended targets if they and the current ones are more than `forEach.max`.

        Otherwise names that change with each poll would take the memory of a day of polls.
        """
        for_each = self.need.settings.for_each
        ended = [target for target in self._rows if target not in present and target is not None]
        room = 1 if for_each is None else for_each.max_targets - len(present)
        if len(ended) > room:
            ended.sort(key=lambda target: -self._seen[target])
            self._forget(in_fair_order(ended)[max(0, room) :])

    def _forget_gone(self, index: int) -> None:
        steps = FORGOTTEN_SECONDS / self.step_seconds
        self._forget([target for target, seen in self._seen.items() if index - seen > steps])

    def _forget(self, targets: Iterable[Target]) -> None:
        for target in targets:
            self._ring.drop_row(self._rows.pop(target))
            del self._seen[target]


def _loads(values: FloatArray) -> FloatArray:
    """Return the values, with NaN in place of those that cannot be loads."""
    return np.where(np.isfinite(values) & (values >= 0), values, np.nan)
