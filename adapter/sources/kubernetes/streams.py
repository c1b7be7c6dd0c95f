"""What every watch needs: its rounds, whole lines out of pieces, and an end for a read that waits in another thread."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from adapter.sources.kubernetes.errors import KubernetesError, UnexpectedResponseError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from threading import Event

    from adapter.sources.kubernetes.client import Answer
    from adapter.sources.kubernetes.settings import WatchSettings
    from adapter.timing.backoff import Backoff

LONGEST_LINE_BYTES = 16 << 20
"""Of one event of a watch. etcd holds at most some MiB of an object, and of most only the metadata is sent."""


def in_rounds(
    stop: Event,
    settings: WatchSettings,
    once: Callable[[Backoff], float],
    failed: Callable[[KubernetesError, Backoff], float],
) -> None:
    """Call `once` again and again until `stop` is set; it, or `failed` where it fails, tells how long to wait."""
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


class Interruptible:
    """The answer that one thread reads at present, and the end that another may put to it, for good."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answer: Answer | None = None
        self._ended = False

    @contextmanager
    def reading(self, opened: AbstractContextManager[Answer]) -> Iterator[Answer]:
        """Open an answer and let it be ended while the block lasts; after `end` it is cancelled at once."""
        with opened as answer:
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
        """Cancel the answer that is read now, and all later ones."""
        with self._lock:
            self._ended = True
            if self._answer is not None:
                self._answer.cancel()


def lines_of(pieces: Iterator[bytes], longest_bytes: int = LONGEST_LINE_BYTES) -> Iterator[list[bytes]]:
    """Yield the whole lines of each piece; what is left without its end is dropped, it will be told again.

    Raises UnexpectedAnswerError for a line that is longer than allowed.
    """
    rest: list[bytes] = []
    held = 0
    for piece in pieces:
        first, *others = piece.split(b"\n")
        rest.append(first)
        held += len(first)
        if held > longest_bytes:
            message = f"one event of a watch has more than {longest_bytes:,} bytes: is it the API server that answers?"
            raise UnexpectedResponseError(message)
        if others:
            lines = [b"".join(rest), *others[:-1]]
            rest, held = [others[-1]], len(others[-1])
            yield [line for line in lines if line]


@contextmanager
def when_set(stop: Event, end: Callable[[], None]) -> Iterator[None]:
    """Call `end` from another thread if `stop` is set during the block: a thread in a read cannot see it."""
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
