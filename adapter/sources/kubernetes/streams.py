"""What every watch needs: whole lines out of pieces, and an end for a read that waits in another thread."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from threading import Event


def lines_of(pieces: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Yield the whole lines of each piece; what is left without its end is dropped, it will be told again."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        if lines:
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
