"""Files that end with a digest of everything before it. It shows damage, and is no protection against an attacker."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

DIGEST_BYTES: Final = 32
_PIECE_BYTES: Final = 1 << 20


def with_digest(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the pieces of a file, followed by the digest of all of them."""
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for piece in pieces:
        digest.update(piece)
        yield piece
    yield digest.digest()


def has_right_digest(file: BinaryIO, size: int) -> bool:
    """Return whether a file of `size` bytes ends with the digest of what precedes it. The file is read in pieces."""
    digest, left = hashlib.blake2b(digest_size=DIGEST_BYTES), size - DIGEST_BYTES
    while left > 0 and (piece := file.read(min(left, _PIECE_BYTES))):
        digest.update(piece)
        left -= len(piece)
    return file.read(DIGEST_BYTES) == digest.digest()
