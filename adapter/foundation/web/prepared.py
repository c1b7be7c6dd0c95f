"""Keeps the bytes of large answers, so that equal answers are serialized and compressed only once.

An answer for hundreds of pods takes half a millisecond to look up, and several milliseconds to serialize, during which
no other request is answered. Values change only with a refresh, so until the next refresh everybody who asks the same
question gets the same bytes.

Access is checked and the values are looked up for each request: the bytes are reused only if the current answer
equals the one from which they were made.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from adapter.foundation.time.single_flight import SingleFlight
from adapter.foundation.web.rendering import compressed_in_advance

FROM_ITEMS = 50
"""Answers with fewer items are serialized each time, which costs less than keeping them."""
MOST_BYTES = 16 << 20
ITEM_BYTES = 128
"""Memory in bytes that an item, a name with its value, needs in addition to its serialized form."""
_WAIT_SECONDS = 1.0

A = TypeVar("A", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Body:
    """The bytes of an answer."""

    plain: bytes
    gzipped: bytes | None = None
    """The compressed bytes; None if the body is sent uncompressed, or is compressed for each request."""


@dataclass(frozen=True, slots=True)
class _Kept(Generic[A]):
    answer: A
    body: Body
    size_bytes: int


class PreparedBodies(Generic[A]):
    """The bytes of the latest answer to each question, up to a limit. Thread-safe."""

    def __init__(self, most_bytes: int = MOST_BYTES, item_bytes: int = ITEM_BYTES) -> None:
        """Keep up to `most_bytes`; an item of an answer takes `item_bytes` in addition to its serialized form."""
        self._most_bytes = most_bytes
        self._item_bytes = item_bytes
        self._lock = threading.Lock()
        self._flights: SingleFlight[Body] = SingleFlight()
        self._kept: OrderedDict[Hashable, _Kept[A]] = OrderedDict()
        """The kept answers by question; the question that was asked least recently comes first."""
        self.held_bytes = 0
        """The approximate memory of everything that is kept, in bytes."""

    def body(self, question: Hashable, answer: A, items: int, make: Callable[[], bytes]) -> Body:
        """Return the bytes of an answer, which has `items` items.

        The result of `make` must depend only on the question and the answer. Its errors pass through.
        """
        if items < FROM_ITEMS:
            return Body(make())
        with self._lock:
            kept = self._kept.get(question)
            if kept is not None:
                self._kept.move_to_end(question)
        # Compared outside of the lock: an answer may have thousands of values.
        if kept is not None and kept.answer == answer:
            return kept.body
        made = self._flights.join((question, answer), lambda: _make_body(make), _WAIT_SECONDS) or _make_body(make)
        self._keep(question, answer, made, items)
        return made

    def _keep(self, question: Hashable, answer: A, body: Body, items: int) -> None:
        size = len(body.plain) + len(body.gzipped or b"") + items * self._item_bytes
        with self._lock:
            self._drop(question)
            if size > self._most_bytes:
                return
            self._kept[question] = _Kept(answer, body, size)
            self.held_bytes += size
            while self.held_bytes > self._most_bytes:
                self._drop(next(iter(self._kept)))

    def _drop(self, question: Hashable) -> None:
        gone = self._kept.pop(question, None)
        if gone is not None:
            self.held_bytes -= gone.size_bytes


def _make_body(make: Callable[[], bytes]) -> Body:
    plain = make()
    return Body(plain, compressed_in_advance(plain))
