"""Decodes percent-encoding exactly once, and strictly: an invalid text is an error."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

_HEX = frozenset("0123456789abcdefABCDEF")


class EncodingError(ValueError):
    """A text is not allowed in a URL. The message continues a sentence that begins by naming the part of the URL."""


def percent_decode(text: str) -> str:
    """Return the decoded text of a part of a URL; each character of `text` is one byte. Raises EncodingError."""
    if text.isascii() and "%" not in text:
        return text
    if any(len(part) < 2 or not _HEX.issuperset(part[:2]) for part in text.split("%")[1:]):
        raise EncodingError("has a % that is not followed by two hexadecimal digits")
    try:
        return unquote_to_bytes(text.encode("latin-1")).decode()
    except UnicodeError as e:
        raise EncodingError("is not UTF-8") from e
