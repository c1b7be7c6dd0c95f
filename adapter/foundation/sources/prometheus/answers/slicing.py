r"""Cuts an answer of many megabytes into pieces that a decoder takes one at a time.

An answer is one JSON document, and decoding it as a whole would block the interpreter for tens of milliseconds. So the
array with the samples is cut between its elements, and the rest, the envelope, is decoded first. It contains the status
and the type, and the warnings, which come after the samples in the document.

**The compact form** that Prometheus writes has an element boundary that a plain search finds: `},{"metric":`. It cannot
occur inside a string, where its first quote would be written `\"`, while this quote follows a brace. Nor can the quote
end a string, since no letter follows the end of a string. So the quote begins a string, the brace before it is
structure, and an object whose first key is `metric` begins there. For lists of series, the boundary is
`},{"__name__":`; a label set that begins with another label (`Zone` sorts before `__name__`) stays in one run with the
label set before it.

**Any other form** (white space, another order of keys) is parsed token by token, with pauses. This is about fifty times
slower, but exact.

A document that is not JSON may be cut anywhere. Its pieces are decoded strictly, so the result is an error and never
wrong samples.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.time.pace import Pace

SLICE_BYTES = 32 * 1024
"""Size of a slice: about 200 samples, which take a fifth of a millisecond to decode."""

_WHOLE_BYTES = 2 * SLICE_BYTES
_LONGEST_GAP_BYTES = 16 * SLICE_BYTES
_LONGEST_TAIL_BYTES = 256 * 1024
_TOKENS_A_SLICE = 1000
_SPANS_A_SLICE = 500

_BLANKS = b" \t\n\r"
"""White space in JSON."""

_DEEPEST = 512
"""Limit of nesting in a document that is parsed by tokens; Prometheus writes about ten levels."""

# A string, with its colon where it is a key, or a bracket. Nothing else affects the structure. A string
# without an end is taken as one token up to the end of the document: searching again from each of its quotes would
# take time that grows with the square of its length.
_TOKEN = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?+\Z))(\s*+:)?|[{}\[\]]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Shape:
    """The form of the answers of one API path."""

    path: tuple[bytes, ...]
    """Keys that lead to the array of elements."""
    head: re.Pattern[bytes]
    """Matches the beginning of the compact form, including the array's opening bracket."""
    boundary: bytes
    """Boundary of two elements in the compact form; its first two bytes end an element and separate it."""


_HEAD = rb'\{"status":"success",(?:"isPartial":(?:true|false),)?"data":'


def _query_shape(result_type: bytes) -> Shape:
    head = _HEAD + rb'\{"resultType":"' + result_type + rb'","result":\[(?=\{"metric":)'
    return Shape(path=(b"data", b"result"), head=re.compile(head), boundary=b'},{"metric":')


VECTOR = _query_shape(b"vector")
MATRIX = _query_shape(b"matrix")
SERIES = Shape(path=(b"data",), head=re.compile(_HEAD + rb"\[(?=\{)"), boundary=b'},{"__name__":')

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Cut:
    """An answer in pieces."""

    envelope: bytes
    """The document with those elements that are not in `spans`: all elements, the last one, or none."""
    spans: tuple[Span, ...]
    """Positions of the other elements, in order: runs of whole elements, to be decoded in brackets."""


def cuts(body: bytearray, shape: Shape, pace: Pace) -> Iterator[Cut]:
    """Yield ways to cut the body, the cheapest first; try the next one if the envelope is not valid JSON."""
    if len(body) <= _WHOLE_BYTES:
        yield Cut(bytes(body), ())
        return
    for cut in (cut_compact, cut_walked):
        done = cut(body, shape, pace)
        if done is not None:
            yield done


def cut_compact(body: bytearray, shape: Shape, pace: Pace, slice_bytes: int = SLICE_BYTES) -> Cut | None:
    """Return a document of the compact form, cut into slices; None if it has another form or cannot be cut."""
    head = shape.head.match(body)
    if head is None:
        return None
    last = body.rfind(shape.boundary, max(head.end(), len(body) - _LONGEST_TAIL_BYTES))
    if last < 0:
        return None
    spans: list[Span] = []
    for part in pace.slices(_compact_spans(body, shape.boundary, (head.end(), last + 1), slice_bytes), _SPANS_A_SLICE):
        spans += part
    if any(end - start > _LONGEST_GAP_BYTES for start, end in spans):
        return None
    return Cut(bytes(body[: head.end()] + body[last + 2 :]), tuple(spans))


def cut_walked(body: bytearray, shape: Shape, pace: Pace, slice_bytes: int = SLICE_BYTES) -> Cut | None:
    """Cut a document of any form.

    Returns None if it lacks the array, if anything but a comma is between two elements, or if it is nested too deeply
    to be decoded.
    """
    walk = _Walk(body, shape.path, slice_bytes)
    for tokens in pace.slices(_TOKEN.finditer(body), _TOKENS_A_SLICE):
        if any(walk.ends_with(token) for token in tokens):
            if not walk.is_separated:
                return None
            return Cut(bytes(body[: walk.array_start] + body[walk.array_end :]), tuple(walk.spans))
        if walk.depth > _DEEPEST:
            return None
    return None


def _compact_spans(body: bytearray, boundary: bytes, elements: Span, slice_bytes: int) -> Iterator[Span]:
    start, stop = elements
    while start < stop:
        jump = start + slice_bytes
        # The search is limited to keep it short; if a span reaches the limit, the document is parsed by tokens instead.
        found = body.find(boundary, jump, min(stop, jump + _LONGEST_GAP_BYTES))
        if found < 0:
            found = min(stop, jump + _LONGEST_GAP_BYTES) - 1
        yield start, found + 1
        start = found + 2


class _Walk:
    """Parses the tokens of a document up to the array at `path`, and through its elements."""

    def __init__(self, body: bytearray, path: tuple[bytes, ...], slice_bytes: int) -> None:
        self.spans: list[Span] = []
        self.array_start = 0
        self.array_end = 0
        self.is_separated = True
        """Whether nothing but a comma is between two spans, and nothing around them: no decoder sees what is there."""
        self._body = body
        self._path = [b'"' + key + b'"' for key in path]
        self._slice_bytes = slice_bytes
        # The key of each open bracket; None in an array and for the document itself.
        self._keys: list[bytes | None] = []
        self._key: bytes | None = None
        self._element_start: int | None = None
        self._element_end = 0

    @property
    def depth(self) -> int:
        """Number of open brackets."""
        return len(self._keys)

    def ends_with(self, token: re.Match[bytes]) -> bool:
        """Process the next token; return whether it closes the array."""
        if token[1] is not None:
            self._key = token[1] if token[2] is not None else None
        elif token[0] in b"{[":
            self._open(token)
        else:
            return self._close(token)
        return False

    def _open(self, token: re.Match[bytes]) -> None:
        self._keys.append(self._key)
        self._key = None
        if self.array_start:
            if self._element_start is None:
                self._element_start = token.start()
                self._look_before(token, b"," if self._element_end else b"")
        elif token[0] == b"[" and self.depth == len(self._path) + 1 and self._keys[1:] == self._path:
            self.array_start = token.end()

    def _close(self, token: re.Match[bytes]) -> bool:
        self._key = None
        if self._keys:
            self._keys.pop()
        depth = len(self._keys) - len(self._path)
        if not self.array_start or depth > 1:
            return False
        if depth == 1:
            self._end_element(token.end())
            return False
        self.array_end = token.start()
        self._look_before(token, b"")
        if self._element_start is not None:
            self.spans.append((self._element_start, self._element_end))
        return True

    def _look_before(self, token: re.Match[bytes], separator: bytes) -> None:
        """Look at what is between the last element, or the beginning of the array, and the token."""
        begin = self._element_end or self.array_start
        if self._body[begin : token.start()].strip(_BLANKS) != separator:
            self.is_separated = False

    def _end_element(self, end: int) -> None:
        self._element_end = end
        if self._element_start is not None and end - self._element_start >= self._slice_bytes:
            self.spans.append((self._element_start, end))
            self._element_start = None
