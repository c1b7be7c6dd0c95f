"""A text that takes long to build, such as all metrics of a process; a separate thread builds it, not too often.

Each reader gets a text whose building began after its request. Readers that ask while a text is being built share the
next one, so the work does not grow with their number.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, TypeAlias

from adapter.foundation.time.time_share import TimeShare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from adapter.foundation.files.gzip_format import Piece

_log = logging.getLogger(__name__)

LARGEST_SHARE = 0.005
"""Largest part of a core that building texts may take. A request that arrives meanwhile waits, and then meets the
readers, so that fewer than one in a hundred of kube-scheduler's calls is late however many clients ask for metrics."""
LONGEST_PAUSE_SECONDS = 1.0
"""The longest pause between two texts, however much CPU time they take: a text that takes 5 ms or more is built at most
once a second."""

Pieces: TypeAlias = "tuple[Piece, ...]"
Taker: TypeAlias = "Callable[[Pieces | None], None]"
"""Gets the pieces of the text, or None if it could not be made; called in the text's thread, so it must not wait."""


class PacedText:
    """One text, which any number of threads may request."""

    def __init__(
        self,
        make: Callable[[], Iterable[Piece]],
        cost: Callable[[], float] = time.thread_time,
        burst_seconds: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`make` returns the text in pieces, which are not copied into one.

        `cost` returns the seconds of CPU time that the thread which calls it has used. `burst_seconds` of this time may
        be used at once after a pause, so that a few readers of a small text do not wait for each other. Large texts are
        built one by one, with pauses.
        """
        self._make = make
        self._cost = cost
        self._share = TimeShare(LARGEST_SHARE, burst_seconds, longest_pause_seconds=LONGEST_PAUSE_SECONDS, clock=clock)
        self._changed = threading.Condition()
        self._takers: list[Taker] = []
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metrics-text", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread without waiting for it; readers that still wait get None."""
        self._is_stopped.set()
        with self._changed:
            self._changed.notify_all()

    def ask(self, take: Taker) -> None:
        """Call `take` once, with a text whose building begins after this call."""
        with self._changed:
            self._takers.append(take)
            self._changed.notify_all()

    def wait(self, seconds: float) -> Pieces | None:
        """Return a text whose building begins after this call; None if it is not finished in time."""
        found: list[Pieces | None] = []
        is_there = threading.Event()

        def take(text: Pieces | None) -> None:
            found.append(text)
            is_there.set()

        self.ask(take)
        return found[0] if is_there.wait(seconds) else None

    def _run(self) -> None:
        while not self._is_stopped.is_set():
            with self._changed:
                self._changed.wait_for(lambda: self._takers or self._is_stopped.is_set())
                takers, self._takers = self._takers, []
            if takers:
                self._serve(takers)
                self._is_stopped.wait(self._share.pause_seconds())

    def _serve(self, takers: list[Taker]) -> None:
        """Build a text and pass it to the takers."""
        before = self._cost()
        text = self._text()
        for take in takers:
            take(text)
        self._share.spend(self._cost() - before)

    def _text(self) -> Pieces | None:
        """Build a text; None if that fails, also where there is too little memory to log why."""
        try:
            try:
                return tuple(self._make())
            except Exception:  # noqa: BLE001 - the loop: one text that fails must not end the metrics
                _log.exception("the metrics could not be written")
        except MemoryError:
            pass
        return None
