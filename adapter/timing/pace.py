"""Keeps bulk work from standing in the way of requests.

One process decodes answers of tens of thousands of samples and answers its callers at the same time, and only one of
its threads can run Python at a time. Decoding five answers of 50,000 samples in one piece each held the interpreter
for so long that the 99th percentile of the requests beside it rose from 4 ms to 404 ms. In slices of half a
millisecond, with real sleeps between them, it stayed at 4 ms, and the bulk work took 5 s of wall time for 0.7 s of
work. The interpreter's own switching does not help: a thread that wants it asks for 5 ms before it gets it, and one
call into C (a decoder, a sort) is not switched at all.

So all bulk work of a process shares one `Pace`: it is done in slices, one at a time, at a distance. A slice should
take half a millisecond and at most one: 200 samples or label sets (about 32 KiB of JSON), or 1,000 steps of a plain
loop. Where the time of a step is not known beforehand the slice itself tells when its time is over.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

ITEMS_A_SLICE = 200
"""Items of the size of a sample that are decoded and filed in about half a millisecond."""

SLICE_SECONDS = 0.0005

T = TypeVar("T")


class Slice:
    """A slice of work that is going on."""

    __slots__ = ("_clock", "began")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.began = clock()
        """In the seconds of the pace's clock."""

    @property
    def is_over(self) -> bool:
        """Whether its half millisecond is used up."""
        return self._clock() - self.began >= SLICE_SECONDS


class Pace:
    """The lane in which the bulk work of a process runs, slice by slice.

    Slices get their turn in the order in which they ask, so a long job (a catalogue of 200,000 series) does not keep
    out a short one.
    """

    def __init__(
        self,
        pause_seconds: float = 0.004,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`pause_seconds` lies between the end of a slice and the beginning of the next, whichever thread's it is."""
        self._pause_seconds = pause_seconds
        self._sleep = sleep
        self._clock = clock
        self._booking = threading.Lock()
        self._free_at = 0.0
        # Reentrant: a slice inside a slice waits for its turn like any other, in the lane that its thread has anyway.
        self._lane = threading.RLock()

    @contextmanager
    def slice(self) -> Iterator[Slice]:
        """Wait for the next turn; the body of the `with` is one slice of work. It must not wait for anything itself."""
        delay = self._book()
        if delay > 0:
            self._sleep(delay)
        with self._lane:
            work = Slice(self._clock)
            try:
                yield work
            finally:
                self._lengthen(self._clock() - work.began)

    def slices(self, items: Iterable[T], size: int = ITEMS_A_SLICE) -> Iterator[list[T]]:
        """Yield the items in lists of `size`; each list is taken in a slice of its own.

        The work on a list follows its slice at once and before the next pause, so it needs no slice of its own as
        long as both together stay under a millisecond. The lane is free meanwhile: the work may wait, take locks, and
        leave the loop early.
        """
        source = iter(items)
        while True:
            with self.slice():
                part = list(islice(source, size))
            if not part:
                return
            yield part

    def timed(self, items: Iterable[T]) -> Iterator[list[T]]:
        """Yield the items in lists of as many as half a millisecond brings forth, at least one.

        For items that are made while they are iterated over; otherwise as `slices`.
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

    def with_pause(self, seconds: float) -> Pace:
        """Return a lane of its own with another pause, for what is waited for; without pauses it stays without."""
        return Pace(min(seconds, self._pause_seconds), self._sleep, self._clock)

    def _book(self) -> float:
        """Take the next free turn and return how long it is until then. Turns and not a lock make the order fair."""
        with self._booking:
            now = self._clock()
            turn = max(now, self._free_at)
            self._free_at = turn + self._pause_seconds
            return turn - now

    def _lengthen(self, seconds: float) -> None:
        """Let the pause begin at the end of the slice instead of at its beginning."""
        with self._booking:
            self._free_at += seconds


def _go_on(_seconds: float) -> None:
    return


UNPACED = Pace(pause_seconds=0.0, sleep=_go_on)
"""Without pauses: for commands that serve nobody meanwhile, and for tests."""
