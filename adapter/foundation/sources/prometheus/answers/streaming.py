r"""Cuts a list of series into runs of whole label sets while its bytes arrive, so that it is never held in memory.

With 200,000 series, such a list has 85 MB, of which 32 KiB are needed at a time. The warnings come at its end, but they
also apply to the label sets before them.

Only the compact form that Prometheus writes is cut, at `},{"` followed by the beginning of a label's name. These four
bytes may also end a string (`"a},{"`), but then a comma, a colon or a bracket follows, never a name. Any other form is
held whole, up to a limit, and left to `slicing`.
"""

from __future__ import annotations

from adapter.foundation.sources.prometheus.answers.slicing import SLICE_BYTES, Shape

MOST_WHOLE_BYTES = 16 * 1024 * 1024
"""Largest document that is accepted if it cannot be cut."""
LONGEST_ELEMENT_BYTES = 1024 * 1024
"""Longest label set: decoding it in one piece blocks the interpreter for about a millisecond."""

_HEAD_BYTES = 256
_BOUNDARY = b'},{"'
_BEHIND_A_STRING = b",:]} \t\r\n"


class TooLongToCutError(ValueError):
    """A part that cannot be cut is longer than the limit; the message says which part."""


class StreamCutter:
    """Receives bytes, returns runs of whole elements, and keeps the rest of the document."""

    def __init__(self, shape: Shape, run_bytes: int = SLICE_BYTES) -> None:
        self._shape = shape
        self._run_bytes = run_bytes
        self._buffer = bytearray()
        self._head = b""
        self._is_compact: bool | None = None
        self._searched = run_bytes
        self._has_cut = False

    @property
    def held(self) -> int:
        """Number of bytes in memory."""
        return len(self._buffer)

    def feed(self, piece: bytes) -> None:
        """Add the next bytes of the document."""
        self._buffer += piece

    def run(self) -> bytes | None:
        """Return the next run of elements as a JSON array; None if more bytes are needed.

        Raises TooLongToCutError, after which the document cannot be used.
        """
        if self._is_compact is None and self.held >= _HEAD_BYTES:
            self._look_at_head()
        end = self._boundary() if self._is_compact else None
        if end is None:
            self._check_held()
            return None
        run = b"".join((b"[", self._buffer[: end + 1], b"]"))
        del self._buffer[: end + 2]
        self._searched = self._run_bytes
        self._has_cut = True
        return run

    def rest(self) -> bytearray:
        """Return the document without the runs returned so far. Call this when all bytes have arrived."""
        return bytearray(self._head) + self._buffer

    def _look_at_head(self) -> None:
        head = self._shape.head.match(self._buffer)
        self._is_compact = head is not None
        if head is not None:
            self._head = bytes(self._buffer[: head.end()])
            del self._buffer[: head.end()]

    def _boundary(self) -> int | None:
        """Return the end of the last element of the next run; None if it has not arrived."""
        while (found := self._buffer.find(_BOUNDARY, self._searched)) >= 0:
            behind = found + len(_BOUNDARY)
            if behind == self.held:
                self._searched = found
                return None
            if self._buffer[behind] not in _BEHIND_A_STRING:
                return found
            self._searched = found + 1
        # A boundary may begin in the last bytes.
        self._searched = max(self._searched, self.held - len(_BOUNDARY) + 1)
        return None

    def _check_held(self) -> None:
        if self._is_compact and self.held > self._run_bytes + LONGEST_ELEMENT_BYTES:
            if self._has_cut:
                raise TooLongToCutError(f"one series has more than {LONGEST_ELEMENT_BYTES:,} bytes of labels")
            # Only the beginning is of the compact form.
            self._is_compact = False
            self._buffer[:0] = self._head
            self._head = b""
        if not self._is_compact and self.held > MOST_WHOLE_BYTES:
            raise TooLongToCutError(f"more than {MOST_WHOLE_BYTES:,} bytes that are not written as Prometheus does")
