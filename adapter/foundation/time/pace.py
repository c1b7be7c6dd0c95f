"""Keeps bulk work from delaying requests.

One process decodes answers of tens of thousands of samples and answers its callers at the same time, and only one of
its threads can run Python at a time. Decoding five answers of 50,000 samples in one piece each blocked the interpreter
for so long that the 99th percentile of concurrent requests rose from 4 ms to 404 ms. In slices of half a
millisecond, with real sleeps between them, it stayed at 4 ms, and the bulk work took 5 s of wall time for 0.7 s of
work. The interpreter's own switching of threads does not help: a waiting thread gets the interpreter only after 5 ms,
and a call into C (a decoder, a sort) is not interrupted at all.

Therefore all bulk work of a process shares one `Pace`: it is done in slices, one at a time, with pauses between them. A
slice should take half a millisecond, and must not take more than one: that is 200 samples or label sets (about 32 KiB
of JSON), or 1,000 steps of a plain loop. If the time of a step is not known beforehand, the slice reports when its time
is over.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

ITEMS_A_SLICE = 200
"""Number of samples that are decoded and stored in about half a millisecond."""

SLICE_SECONDS = 0.0005
_LONGEST_COUNTED_SECONDS = 1.0
"""A slice that took longer was interrupted, as by a stop of the process."""

T = TypeVar("T")


class Slice:
    """A slice of work in progress."""

    __slots__ = ("_clock", "began")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.began = clock()
        """Start of the slice by the pace's clock, in seconds."""

    @property
    def is_over(self) -> bool:
        """Whether the slice has used up its half millisecond."""
        return self._clock() - self.began >= SLICE_SECONDS


class Pace:
    """The lane in which the bulk work of a process runs, slice by slice.

    Slices run in the order in which they were requested, so a long job (a catalogue of 200,000 series) does not block a
    short one.
    """

    def __init__(
        self,
        pause_seconds: float = 0.004,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make a lane that pauses for `pause_seconds` after each slice before the next one starts in any thread."""
        self._pause_seconds = pause_seconds
        self._sleep = sleep
        self._clock = clock
        self._booking = threading.Lock()
        self._free_at = 0.0
        # The lock is reentrant: a slice inside a slice waits for its turn like any other, in its thread's lane.
        self._lane = threading.RLock()

    @contextmanager
    def slice(self) -> Iterator[Slice]:
        """Wait for the next turn; the body of the `with` statement is one slice of work and must not wait."""
        delay = self._reserve_turn()
        if delay > 0:
            self._sleep(delay)
        with self._lane:
            work = Slice(self._clock)
            try:
                yield work
            finally:
                self._lengthen(self._clock() - work.began)

    def slices(self, items: Iterable[T], size: int = ITEMS_A_SLICE) -> Iterator[list[T]]:
        """Yield the items in lists of `size`; each list is made in a separate slice.

        The caller works on a list right after its slice and before the next pause, so that work needs no slice of its
        own if both together stay under a millisecond. The lane is free during that work, which may wait, take locks,
        and leave the loop early.
        """
        source = iter(items)
        while True:
            with self.slice():
                part = list(islice(source, size))
            if not part:
                return
            yield part

    def timed(self, items: Iterable[T]) -> Iterator[list[T]]:
        """Yield the items in lists, each of as many as half a millisecond produces, but at least one.

        Use this for items that are computed during the iteration; otherwise it works like `slices`.
        """
        source: Iterator[T] | None = iter(items)
        while source is not None:
            part: list[T] = []
            with self.slice() as work:
                for item in source:
                    part.append(item)
                    if work.is_over:
                        break
                else:
                    source = None
            if part:
                yield part

    def set_pause(self, seconds: float) -> None:
        """Set the length of the pauses: a process that has just started needs none, since no request can be delayed."""
        with self._booking:
            self._pause_seconds = seconds

    def with_pause(self, seconds: float) -> Pace:
        """Return a separate lane with a pause of at most `seconds`, for work that a caller waits for."""
        return Pace(min(seconds, self._pause_seconds), self._sleep, self._clock)

    def _reserve_turn(self) -> float:
        """Take the next free turn and return the time until it starts. Turns make the order fair, unlike a lock."""
        with self._booking:
            now = self._clock()
            turn = max(now, self._free_at)
            self._free_at = turn + self._pause_seconds
            return turn - now

    def _lengthen(self, seconds: float) -> None:
        """Let the pause start at the end of the slice instead of at its start."""
        with self._booking:
            self._free_at += min(seconds, _LONGEST_COUNTED_SECONDS)


def _go_on(_seconds: float) -> None:
    return


UNPACED = Pace(pause_seconds=0.0, sleep=_go_on)
"""A lane without pauses, for commands that do not serve requests, and for tests."""
