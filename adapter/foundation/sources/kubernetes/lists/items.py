"""Decodes the `items` of a JSON list in slices, so that a large list does not block the interpreter.

A page of 500 pods has 2.5 MB and takes 6 ms to decode; a file of 50,000 pods takes 100 times as long. Meanwhile, no
request would be answered. No available parser works in steps, so the document is cut into parts that are decoded one
by one.

The place of each cut is guessed from the beginning of the first item, and decoding verifies the guess: a part starts
where an item starts, and if adding brackets makes it a JSON array, it ends where an item ends. After a cut inside an
item or a string, the part is not valid JSON, and the next place is tried. So a cut is never wrong, only sometimes late.
"""

from __future__ import annotations

import mmap
import re
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

import msgspec

from adapter.foundation.objects.decoders import decoder_of
from adapter.foundation.sources.kubernetes.lists.nesting import TOO_DEEP, is_cut, shallow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from adapter.foundation.time.pace import Pace

T = TypeVar("T")

Document: TypeAlias = bytes | mmap.mmap
"""The text of a document; a large file may be mapped into memory instead of being read."""

PART_BYTES = 1 << 17
"""Size of a part: about 25 pods with all of their metadata, which take 0.3 ms to decode and store."""

_ITEMS = re.compile(rb'"items"\s*:\s*\[')
_FIRST_KEY = re.compile(rb'(\s*)\{\s*("[^"\\]*")')
_BETWEEN_OBJECTS = re.compile(rb"\}\s*,\s*(?=\{)")
_BYTE = re.compile(r" \(byte (\d+)\)$")
_ITEM_OF_PART = re.compile(r"\$\[\d+\]")
_TRIES = 16


class ListMetadata(msgspec.Struct, gc=False, rename={"resource_version": "resourceVersion", "next_page": "continue"}):
    """The fields of `meta/v1 ListMeta` that are read."""

    resource_version: str = ""
    next_page: str = ""
    """Continue token of the next page; empty on the last page."""


class ListHead(msgspec.Struct, rename={"api_version": "apiVersion"}):
    """The fields of a list except for its items."""

    items: msgspec.Raw = msgspec.Raw()
    """The text of the items: empty if the key is absent; `null` or `[]` if the list is empty."""

    kind: str = ""
    api_version: str = ""
    metadata: ListMetadata = msgspec.field(default_factory=ListMetadata)


_FIELDS = decoder_of(dict[str, msgspec.Raw])
_RAW_ITEMS = decoder_of(list[msgspec.Raw])


class ItemsError(ValueError):
    """The document is not JSON of the expected form.

    Attributes:
        line: from 1; None if it is not known.
    """

    def __init__(self, reason: str, line: int | None) -> None:
        """`reason` is the text of `str()`, without the line."""
        super().__init__(reason)
        self.line = line


class JsonList(Generic[T]):
    """A JSON document with a list of objects in its top-level key `items`."""

    def __init__(
        self,
        body: Document,
        item: type[T],
        part_bytes: int = PART_BYTES,
        unreadable: Callable[[msgspec.Raw, str], None] | None = None,
    ) -> None:
        """`item` is the type of the items; a part is about `part_bytes` long.

        An item that does not match the type causes an ItemsError; if `unreadable` is given, it is instead
        called with the item and the reason, and the item is left out.
        """
        self._body = body
        self._items = decoder_of(list[item])  # type: ignore[valid-type]  # only known at run time
        self._item = decoder_of(item)
        self._unreadable = unreadable
        self._part_bytes = part_bytes
        self._start = start_of_items(body)
        self._separator = _separator(body, self._start)
        self._head: ListHead | None = None

    @property
    def prefix(self) -> ListHead:
        """The fields before the items."""
        return decode_json(self._body[: self._start] + b"]}" if self._start >= 0 else b"{}", ListHead)

    @property
    def head(self) -> ListHead:
        """The fields before and after the items. Available after all items have been read."""
        if self._head is None:
            raise RuntimeError("the items were not read to their end")
        return self._head

    def batches(self, pace: Pace) -> Iterator[list[T]]:
        """Yield the items in order, a part at a time, each decoded in a slice of the pace. Raises ItemsError.

        As with `Pace.slices`, a part should be processed within the slice in which it was decoded.
        """
        position = self._start
        if position < 0:
            self._head = decode_json(self._body, ListHead)
            # Go writes `null` for a nil slice. Anything else is not a list: the error of a proxy, or a single object,
            # must not be taken for an empty list.
            if bytes(self._head.items) != b"null":
                raise ItemsError("there is no list under the key `items`", None)
        while position >= 0:
            with pace.slice():
                items, position = self._part(position)
            yield items

    def _part(self, start: int) -> tuple[list[T], int]:
        """Decode the next part; return its items and the start of the following part (-1 if it was the last)."""
        reach = start + self._part_bytes
        for tried in range(_TRIES):
            end, following = self._next_boundary(reach)
            if end < 0:
                break
            try:
                return self._decode_items(start, end), following
            except msgspec.ValidationError as error:
                raise self._failure(error, start) from error
            except msgspec.DecodeError:
                reach = end + (end - start) * tried // 4
        return self._last_part(start), -1

    def _next_boundary(self, reach: int) -> tuple[int, int]:
        """Guess where an item ends after `reach`, and where the next one starts; (-1, -1) if there is no next item."""
        between = self._separator.search(self._body, reach) or _BETWEEN_OBJECTS.search(self._body, reach)
        return (between.start() + 1, between.end()) if between else (-1, -1)

    def _last_part(self, start: int) -> list[T]:
        """Decode up to the bracket that closes the items, and the fields around them."""
        end = len(self._body)
        failure: msgspec.DecodeError | None = None
        for _ in range(_TRIES):
            end = self._body.rfind(b"]", start, end)
            if end < 0:
                break
            try:
                items = self._decode_items(start, end)
            except msgspec.DecodeError as error:
                failure = failure or error
                continue
            self._head = decode_json(self._body[: self._start] + self._body[end:], ListHead)
            return items
        if failure is None:
            raise ItemsError("the list of items is not closed", None)
        raise self._failure(failure, start) from failure

    def _decode_items(self, start: int, end: int) -> list[T]:
        piece = b"[" + self._body[start:end] + b"]"
        try:
            return self._items.decode(piece)
        except (msgspec.ValidationError, UnicodeDecodeError, RecursionError) as error:
            if self._unreadable is not None:
                return list(self._readable(piece, self._unreadable))
            if isinstance(error, msgspec.ValidationError):
                raise
            raise _undecodable(error) from error

    def _readable(self, piece: bytes, unreadable: Callable[[msgspec.Raw, str], None]) -> Iterator[T]:
        """Decode the items of a JSON array one by one, and yield those that can be read."""
        for content in _items_of(piece):
            if is_cut(content):
                unreadable(content, TOO_DEEP)
                continue
            try:
                yield self._item.decode(content)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                unreadable(content, str(error))

    def _failure(self, error: msgspec.DecodeError, start: int) -> ItemsError:
        # The added bracket shifts all positions in the part by one byte. The index of an item in the message means
        # nothing.
        return _items_error(error, self._body, start - 1, "$.items[]")


def start_of_items(body: Document) -> int:
    """Return the start of the first item of the top-level key `items`; -1 if there is no such list."""
    for tried, found in enumerate(_ITEMS.finditer(body)):
        if tried == _TRIES:
            break
        try:
            _FIELDS.decode(body[: found.end()] + b"]}")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            # It is a nested key of that name.
            continue
        return found.end()
    return -1


def _separator(body: Document, start: int) -> re.Pattern[bytes]:
    """Return a pattern that probably separates items, as all begin with the first one's key and indentation."""
    first = _FIRST_KEY.match(body, start) if start >= 0 else None
    if first is None:
        return _BETWEEN_OBJECTS
    indent = re.escape(first.group(1)) if b"\n" in first.group(1) else rb"\s*"
    return re.compile(rb"\}\s*," + indent + rb"(?=\{\s*" + re.escape(first.group(2)) + rb")")


def decode_json(body: Document, form: type[T]) -> T:
    """Return the whole document as this type. Raises ItemsError."""
    try:
        return _decode_whole(body, form)
    except msgspec.DecodeError as error:
        raise _items_error(error, body, 0, "$") from error


def _decode_whole(body: Document, form: type[T]) -> T:
    """Return the whole document as this type. Raises DecodeError of msgspec, and ItemsError for all other errors."""
    try:
        return decoder_of(form).decode(body)
    except (UnicodeDecodeError, RecursionError) as error:
        raise _undecodable(error) from error


def _items_of(piece: bytes) -> list[msgspec.Raw]:
    """Return the items of a JSON array. Raises DecodeError of msgspec, and ItemsError for all other errors."""
    try:
        return _RAW_ITEMS.decode(piece)
    except RecursionError:
        # One of them is nested too deeply, which must not hide the others.
        return _decode_whole(shallow(piece), list[msgspec.Raw])
    except UnicodeDecodeError as error:
        raise _undecodable(error) from error


def _undecodable(error: UnicodeDecodeError | RecursionError) -> ItemsError:
    reason = f"not UTF-8: {error.reason}" if isinstance(error, UnicodeDecodeError) else TOO_DEEP
    return ItemsError(reason, None)


def _items_error(error: msgspec.DecodeError, body: Document, offset: int, root: str) -> ItemsError:
    text = _ITEM_OF_PART.sub(root, str(error))
    place = _BYTE.search(text)
    if place is None:
        return ItemsError(text, None)
    return ItemsError(_BYTE.sub("", text), _newlines(body, offset + int(place.group(1))) + 1)


def _newlines(body: Document, end: int) -> int:
    return sum(body[at : min(at + PART_BYTES, end)].count(b"\n") for at in range(0, end, PART_BYTES))
