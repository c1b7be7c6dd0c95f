"""Hides the credentials of a request in the answer to it (pure).

Gateways in debug mode repeat the request in their pages, and servers pass on what another server said. Such text
becomes part of errors and warnings, which are logged, and which anybody who may query a metric or describe its HPA can
read.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

HIDDEN: Final = "…".encode()
"""Stands in place of what is hidden."""
LONGEST_SHOWN_PART: Final = 14
"""The most consecutive bytes of a secret that a text may show, such as those at the end of a truncated text."""

_FEWEST_BYTES: Final = 8
"""Shorter values, such as names of tenants, are not hidden, since they occur in ordinary words."""
_BLOCK: Final = (LONGEST_SHOWN_PART + 1) // 2
"""Size of the blocks by which secrets are found: any part that is too long to be shown includes a whole block."""
_CREDENTIAL_NAME: Final = re.compile(r"auth|cookie|credential|key|password|secret|token", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Secrets:
    """The values of a request that its answer must not repeat."""

    credentials: tuple[bytes, ...] = ()
    """Hidden wherever they occur, also in labels."""
    others: tuple[bytes, ...] = ()
    """Hidden only in messages: they may be names of tenants, which may legitimately occur in labels."""

    def hidden_in(self, message: bytes) -> bytes:
        """Return the message, in which at most `LONGEST_SHOWN_PART` consecutive bytes of a secret remain."""
        for secret in (*self.credentials, *self.others):
            message = _without_parts(message.replace(secret, HIDDEN), secret)
        return message

    def hidden_in_pieces(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield an answer with the credentials hidden. Bytes that may begin a credential wait for the next piece."""
        for secret in self.credentials:
            pieces = _pieces_without(pieces, secret)
        yield from pieces


NO_SECRETS: Final = Secrets()


def secrets_of(headers: Mapping[str, str], others: Iterable[str] = ()) -> Secrets:
    """Return the secrets among the headers that carry credentials or tenants, and in other values of a request."""
    credentials, rest = [], [value.encode() for value in others]
    for name, value in headers.items():
        secret = value.rpartition(" ")[2].encode()
        if not _CREDENTIAL_NAME.search(name):
            rest.append(secret)
            continue
        credentials.append(secret)
        if value.startswith("Basic "):
            rest.append(_password(secret))
    return Secrets(_long(credentials), _long(rest))


def _long(values: Iterable[bytes]) -> tuple[bytes, ...]:
    return tuple(value for value in values if len(value) >= _FEWEST_BYTES)


def _password(basic: bytes) -> bytes:
    try:
        return base64.b64decode(basic).partition(b":")[2]
    except binascii.Error:
        return b""


def _pieces_without(pieces: Iterable[bytes], secret: bytes) -> Iterator[bytes]:
    held = b""
    for each in pieces:
        piece = (held + each).replace(secret, HIDDEN)
        held = _possible_beginning(piece, secret)
        if shown := piece[: len(piece) - len(held)]:
            yield shown
    if held:
        yield held


def _possible_beginning(piece: bytes, secret: bytes) -> bytes:
    """Return the end of a piece that may be the beginning of the secret."""
    begin = max(0, len(piece) - len(secret) + 1)
    while (begin := piece.find(secret[:1], begin)) >= 0:
        if secret.startswith(piece[begin:]):
            return piece[begin:]
        begin += 1
    return b""


def _without_parts(message: bytes, secret: bytes) -> bytes:
    """Return the message without long parts of the secret, which may be truncated or interrupted by escapes."""
    if len(secret) <= LONGEST_SHOWN_PART:
        return message
    offsets: dict[bytes, list[int]] = defaultdict(list)
    for offset in range(len(secret) - _BLOCK + 1):
        offsets[secret[offset : offset + _BLOCK]].append(offset)
    kept, end, at = bytearray(), 0, 0
    while at < len(message):
        parts = (_part(message, at, secret, offset) for offset in offsets.get(message[at : at + _BLOCK], ()))
        first, last = max(parts, key=_length, default=(at, at))
        if _length((first, last)) <= LONGEST_SHOWN_PART:
            at += _BLOCK
            continue
        kept += message[end:first] + HIDDEN
        end = at = last
    return bytes(kept + message[end:])


def _length(part: tuple[int, int]) -> int:
    return part[1] - part[0]


def _part(message: bytes, at: int, secret: bytes, offset: int) -> tuple[int, int]:
    """Return start and end of the longest match around position `at` of the message and `offset` of the secret."""
    before = 0
    while before < min(at, offset) and message[at - before - 1] == secret[offset - before - 1]:
        before += 1
    after = 0
    while after < min(len(message) - at, len(secret) - offset) and message[at + after] == secret[offset + after]:
        after += 1
    return at - before, at + after
