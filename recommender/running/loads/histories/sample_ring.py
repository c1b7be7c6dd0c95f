"""Samples of many series on one grid, in memory that does not grow with time.

Each series has a row; a sample of grid time `index * step` is in column `index % steps`. Samples are float32: seven
digits are more than the precision of a load, and 10,000 series of two weeks need half of the memory of float64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from recommender.kinds.predictive.arrays import FloatArray, IntArray

Samples: TypeAlias = NDArray[np.float32]
Span: TypeAlias = tuple[int, int]
"""The first and the last number of adjacent grid times."""

LARGEST_SAMPLE = float(np.finfo(np.float32).max)
ROWS_A_BLOCK = 64
"""Rows are added in blocks, so that nothing is copied when a series is added."""


class SampleRing:
    """A ring of samples. Not thread-safe."""

    def __init__(self, steps: int, rows_a_block: int = ROWS_A_BLOCK) -> None:
        """Make an empty ring of `steps` grid times."""
        self.steps = steps
        self._rows_a_block = rows_a_block
        self._blocks: list[Samples] = []
        self._free_rows: list[int] = []
        """Rows that no series has at present."""
        self._asked = np.zeros(steps, dtype=np.bool_)
        self._any = np.zeros(steps, dtype=np.bool_)
        self._first: dict[int, int] = {}
        """The number of the first known sample of each row."""
        self.newest: int | None = None
        """The number of the newest grid time; None if nothing has been put yet."""

    @property
    def oldest(self) -> int:
        """The number of the oldest grid time that is kept."""
        return 0 if self.newest is None else self.newest - self.steps + 1

    def add_row(self) -> int:
        """Return the number of a new row without samples."""
        if not self._free_rows:
            start = len(self._blocks) * self._rows_a_block
            self._blocks.append(np.full((self._rows_a_block, self.steps), np.nan, dtype=np.float32))
            self._free_rows = list(range(start + self._rows_a_block - 1, start - 1, -1))
        return self._free_rows.pop()

    def drop_row(self, row: int) -> None:
        """Forget the samples of a row, which may be given to another series."""
        block, at = divmod(row, self._rows_a_block)
        self._blocks[block][at] = np.nan
        self._first.pop(row, None)
        self._free_rows.append(row)

    def advance(self, newest: int) -> None:
        """Make room up to a grid time; samples that are older than the length of the ring are forgotten."""
        if self.newest is None:
            self.newest = newest
            return
        gone = min(newest - self.newest, self.steps)
        if gone <= 0:
            return
        for start, end in self._column_spans(newest - gone + 1, newest):
            for block in self._blocks:
                block[:, start:end] = np.nan
            self._asked[start:end] = False
            self._any[start:end] = False
        self.newest = newest

    def clear(self) -> None:
        """Forget all samples, and which grid times have been requested; the rows stay."""
        for block in self._blocks:
            block[:] = np.nan
        self._asked[:] = False
        self._any[:] = False
        self._first.clear()
        self.newest = None

    def put_at(self, index: int, rows: Sequence[int], values: Sequence[float]) -> None:
        """Put one sample into each of the rows, and note that the grid time has been requested.

        A value that a sample cannot hold is left out, as in `put`.
        """
        self.advance(index)
        if index < self.oldest:
            return
        column = index % self.steps
        for row, value in zip(rows, values, strict=True):
            if value > LARGEST_SAMPLE:
                continue
            block, at = divmod(row, self._rows_a_block)
            self._blocks[block][at, column] = value
            self._first[row] = min(self._first.get(row, index), index)
        self._asked[column] = True
        self._any[column] = self._any[column] or bool(rows)

    def put(self, row: int, indices: IntArray, values: FloatArray) -> None:
        """Put samples of one row; those outside the ring are left out."""
        kept = (indices >= self.oldest) & (indices <= (self.newest or 0)) & (values <= LARGEST_SAMPLE)
        if not kept.any():
            return
        columns = indices[kept] % self.steps
        block, at = divmod(row, self._rows_a_block)
        self._blocks[block][at, columns] = values[kept]
        self._any[columns] = True
        first = int(indices[kept].min())
        self._first[row] = min(self._first.get(row, first), first)

    def note_requested(self, first: int, last: int) -> None:
        """Note that the grid times have been requested, so that their unknown samples count as nonexistent."""
        if self.newest is None:
            return
        for start, end in self._column_spans(max(first, self.oldest), min(last, self.newest)):
            self._asked[start:end] = True

    def missing_spans(self, first: int, last: int, doubted_from: int) -> list[Span]:
        """Return the spans between two grid times that have not been requested, oldest first.

        From `doubted_from` on, a grid time without any sample counts as not requested: its samples may arrive late.
        """
        numbers = np.arange(max(first, self.oldest), last + 1, dtype=np.int64)
        columns = numbers % self.steps
        lacks = ~self._asked[columns] | ((numbers >= doubted_from) & ~self._any[columns])
        edges = np.flatnonzero(np.diff(np.concatenate([[False], lacks, [False]]).astype(np.int8)))
        return [
            (int(numbers[start]), int(numbers[end - 1])) for start, end in zip(edges[::2], edges[1::2], strict=True)
        ]

    def window(self, rows: Iterable[int], first: int, last: int) -> Samples:
        """Return the samples of rows from one grid time to another, shape (rows, steps); NaN where unknown.

        Grid times that are not in the ring are NaN.
        """
        rows = list(rows)
        found = np.full((len(rows), last - first + 1), np.nan, dtype=np.float32)
        low, high = max(first, self.oldest), min(last, -1 if self.newest is None else self.newest)
        for place, row in enumerate(rows):
            block, at = divmod(row, self._rows_a_block)
            filled = low - first
            for start, end in self._column_spans(low, high):
                found[place, filled : filled + end - start] = self._blocks[block][at, start:end]
                filled += end - start
        return found

    def first_known(self, row: int) -> int | None:
        """Return the number of the first known sample of a row; None if it has none.

        If the ring no longer holds that sample, the number is that of the oldest grid time.
        """
        first = self._first.get(row)
        return None if first is None else max(first, self.oldest)

    def known_samples(self) -> int:
        """Return how many samples are known."""
        return sum(block.size - int(np.count_nonzero(np.isnan(block))) for block in self._blocks)

    def requested_at(self, first: int, last: int) -> NDArray[np.bool_]:
        """Return which of the grid times have been requested; all of them must be in the ring."""
        return self._asked[np.arange(first, last + 1, dtype=np.int64) % self.steps]

    def _column_spans(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return the columns of a span as one or two slices, in the order of time."""
        if last < first:
            return []
        start, count = first % self.steps, last - first + 1
        until_end = min(count, self.steps - start)
        parts = [(start, start + until_end)]
        if count > until_end:
            parts.append((0, count - until_end))
        return parts
