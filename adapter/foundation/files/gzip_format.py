"""The gzip format (RFC 1952). Other threads run during compression, since zlib releases the interpreter lock."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

FAST: Final = 1
"""The level of Go's API servers: higher levels cost several times the CPU time and save a tenth of the bytes."""
SMALL: Final = 6
_FORMAT: Final = 16 + zlib.MAX_WBITS
"""`wbits` of zlib: a gzip header, and the largest window."""


class GzipError(ValueError):
    """The compressed data is damaged, cut off or too large; the message says which."""


def compress(data: bytes, level: int = FAST) -> bytes:
    """Return the data as a gzip member. Members may follow each other (RFC 1952, 2.2)."""
    return zlib.compress(data, level, wbits=_FORMAT)


@dataclass(frozen=True, slots=True)
class PackedText:
    """A text in the gzip format, unpacked when it is sent: for large texts that many clients may request."""

    member: bytes
    size: int
    """Size of the uncompressed text in bytes."""

    def unpack(self) -> bytes:
        """Return the uncompressed text."""
        return zlib.decompress(self.member, wbits=_FORMAT, bufsize=self.size)


Piece: TypeAlias = "bytes | PackedText"
"""A piece of a text."""


def gzipped_text(text: bytes) -> PackedText:
    """Return a text in the gzip format."""
    return PackedText(compress(text), len(text))


def text_of(piece: Piece) -> bytes:
    """Return the text of a piece."""
    return piece if isinstance(piece, bytes) else piece.unpack()


def text_bytes(pieces: Iterable[Piece]) -> int:
    """Return the size of the text of the pieces, uncompressed, in bytes."""
    return sum(len(piece) if isinstance(piece, bytes) else piece.size for piece in pieces)


def text_of_pieces(pieces: Iterable[Piece]) -> bytes:
    """Return the text of all pieces, uncompressed."""
    return b"".join(map(text_of, pieces))


class GzipWriter:
    """Compresses one gzip member piece by piece, so that no step takes long."""

    def __init__(self) -> None:
        self._compressor = zlib.compressobj(FAST, wbits=_FORMAT)
        self._written: list[bytes] = []

    def add(self, data: bytes) -> None:
        """Append data."""
        self._written.append(self._compressor.compress(data))

    def end(self) -> bytes:
        """Return the whole member; nothing can be appended afterwards."""
        self._written.append(self._compressor.flush())
        return b"".join(self._written)


def decompress(data: bytes, most_bytes: int) -> bytes:
    """Return the content of a gzip member, at most `most_bytes` long. Raises GzipError."""
    pieces = gunzipped_pieces([data], most_bytes)
    content = next(pieces, b"")
    if next(pieces, b""):
        raise GzipError("it is too large")
    return content


def gunzipped_pieces(pieces: Iterable[bytes], piece_bytes: int) -> Iterator[bytes]:
    """Yield the content of a gzip member in pieces of limited size: a kilobyte may expand to a megabyte.

    Data after the member is ignored. Raises GzipError.
    """
    decompressor = zlib.decompressobj(wbits=_FORMAT)
    for piece in pieces:
        rest = piece
        while rest and not decompressor.eof:
            try:
                yield decompressor.decompress(rest, piece_bytes)
            except zlib.error as error:
                raise GzipError(f"it cannot be decompressed: {error}") from error
            rest = decompressor.unconsumed_tail
    if not decompressor.eof:
        raise GzipError("it is cut off")
