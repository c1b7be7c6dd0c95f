"""Percent-encoding, undone exactly once and strictly: what cannot be read is an error and is never guessed at."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

_HEX = frozenset("0123456789abcdefABCDEF")


class EncodingError(ValueError):
    """A text that no URL may have; the message is the rest of a sentence that begins with where it stands."""


def decoded(text: str) -> str:
    """Return a raw piece of a URL, one character a byte, as the text that it spells. Raises EncodingError."""
    if text.isascii() and "%" not in text:
        return text
    if any(len(part) < 2 or not _HEX.issuperset(part[:2]) for part in text.split("%")[1:]):
        raise EncodingError("has a % that is not followed by two hexadecimal digits")
    try:
        return unquote_to_bytes(text.encode("latin-1")).decode()
    except UnicodeError as e:
        raise EncodingError("is not UTF-8") from e
