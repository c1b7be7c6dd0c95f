"""Parts that every watch needs: repeated rounds, whole lines, and a way to end a read in another thread."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from adapter.foundation.sources.kubernetes.errors import KubernetesError, UnexpectedResponseError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from threading import Event

    from adapter.foundation.sources.kubernetes.answers import Answer
    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from adapter.foundation.sources.kubernetes.lists.list_watch import ListWatch, WatchSettings
    from adapter.foundation.time.backoff import Backoff

LONGEST_LINE_BYTES = 16 << 20
"""Longest event of a watch. Objects in etcd have at most a few MiB, and mostly only the metadata is sent."""


def in_rounds(
    stop: Event,
    settings: WatchSettings,
    once: Callable[[Backoff], float],
    failed: Callable[[KubernetesError, Backoff], float],
) -> None:
    """Call `once` repeatedly until `stop` is set. `once` returns the seconds to wait; if it fails, `failed` does."""
    backoff = settings.backoff()
    while not stop.is_set():
        try:
            delay = once(backoff)
        except KubernetesError as error:
            if stop.is_set():
                return
            delay = failed(error, backoff)
        if delay > 0:
            settings.wait(stop, delay)


class CollectionReader:
    """Opens answers about one collection. One thread reads, and another one can end its reading for good."""

    def __init__(self, client: KubernetesClient, list_watch: ListWatch, settings: WatchSettings) -> None:
        self._client = client
        self._list_watch = list_watch
        self._settings = settings
        self._lock = threading.Lock()
        self._answer: Answer | None = None
        self._ended = False

    @contextmanager
    def open(self, query: Mapping[str, str], accept: str, silence: float | None = None) -> Iterator[Answer]:
        """Open an answer, which `end` cancels during the block. If `end` was called before, cancel it at once.

        `silence` is the time in seconds without a byte after which reading it fails.
        """
        with self._client.open(self._list_watch.path, query, accept, silence) as answer:
            with self._lock:
                self._answer = answer
                if self._ended:
                    answer.cancel()
            try:
                yield answer
            finally:
                with self._lock:
                    self._answer = None

    def end(self) -> None:
        """Cancel the current answer, and all later ones."""
        with self._lock:
            self._ended = True
            if self._answer is not None:
                self._answer.cancel()

    def note_heard(self) -> None:
        """Note that the server has sent something."""
        resource = self._list_watch.resource.qualified
        self._settings.telemetry.set_last_contact(resource, self._settings.wall_clock())


def lines_of(pieces: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Yield the whole lines of each piece. An incomplete last line is dropped, since the next watch repeats it.

    Raises UnexpectedResponseError for a line that is longer than allowed.
    """
    rest: list[bytes] = []
    held = 0
    for piece in pieces:
        first, *others = piece.split(b"\n")
        rest.append(first)
        held += len(first)
        if held > LONGEST_LINE_BYTES:
            message = (
                f"one event of a watch has more than {LONGEST_LINE_BYTES:,} bytes: check that this is the API server"
            )
            raise UnexpectedResponseError(message)
        if others:
            lines = [b"".join(rest), *others[:-1]]
            rest, held = [others[-1]], len(others[-1])
            yield [line for line in lines if line]


@contextmanager
def when_set(stop: Event, end: Callable[[], None]) -> Iterator[None]:
    """Call `end` from another thread if `stop` is set during the block: a thread that reads would not notice that."""
    left = threading.Event()

    def wait() -> None:
        while not left.is_set():
            if stop.wait(1.0):
                end()
                return

    threading.Thread(target=wait, name="end of watch", daemon=True).start()
    try:
        yield
    finally:
        left.set()
