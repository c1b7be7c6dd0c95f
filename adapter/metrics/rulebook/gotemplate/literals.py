"""Strings, characters and numbers as Go spells them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|([0-7]{3})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))|[^\\]", re.DOTALL)
_SHORT = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92}
_INTEGER = re.compile(r"[+-]?(?:0[xX](?:_?[0-9a-fA-F])+|0[bB](?:_?[01])+|0[oO]?(?:_?[0-7])+|[1-9](?:_?[0-9])*|0)")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_HEX_FLOAT = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+")
_COMPLEX = re.compile(r"[+-]?[0-9.]+i")
_SHOWN_CHARACTERS = 60
"""Longest part of a literal that a message shows."""


class LiteralError(ValueError):
    """A string, character or number is not written as in Go; the message says why."""


def read_string(literal: str) -> str:
    """Return the text of a literal in double quotes or back quotes; raises LiteralError."""
    if literal.startswith("`"):
        return literal[1:-1].replace("\r", "")
    return _unescape_text(literal[1:-1], quote='"')


def read_character(literal: str) -> int:
    """Return the code of a literal in single quotes, which is a number in Go; raises LiteralError."""
    text = _unescape_text(literal[1:-1], quote="'")
    if len(text) != 1:
        raise LiteralError(f"{_shorten_literal(literal)} is not one character; write strings in double quotes")
    return ord(text)


def read_number(literal: str) -> int | float:
    """Return the number; raises LiteralError."""
    if _INTEGER.fullmatch(literal):
        number = _integer(literal.replace("_", ""))
        if number is None or not -(2**63) <= number < 2**63:
            raise LiteralError(f"{_shorten_literal(literal)} is too large for a whole number")
        return number
    if _FLOAT.fullmatch(literal):
        if not any(mark in literal for mark in ".eE"):
            raise LiteralError(f"{_shorten_literal(literal)} is not a number")
        return _finite(literal, float)
    if _HEX_FLOAT.fullmatch(literal):
        return _finite(literal, float.fromhex)
    if _COMPLEX.fullmatch(literal):
        raise LiteralError(f"complex numbers such as {_shorten_literal(literal)} are not supported")
    raise LiteralError(f"{_shorten_literal(literal)} is not a number")


def _finite(literal: str, read: Callable[[str], float]) -> float:
    try:
        number = read(literal)
    except OverflowError:
        number = math.inf
    if math.isinf(number):
        raise LiteralError(f"{_shorten_literal(literal)} is too large for a number")
    return number


def _integer(text: str) -> int | None:
    """Return the number; None if it has more than the thousands of decimal digits that Python accepts."""
    digits = text.lstrip("+-")
    octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
    try:
        return int(text, 8 if octal else 0)
    except ValueError:
        return None


def _shorten_literal(literal: str) -> str:
    return literal if len(literal) <= _SHOWN_CHARACTERS else f"{literal[:_SHOWN_CHARACTERS]}…"


def _unescape_text(text: str, quote: str) -> str:
    found = b"".join(_bytes_of(match, quote) for match in _ESCAPE.finditer(text))
    try:
        return found.decode()
    except UnicodeDecodeError as e:
        raise LiteralError("the escapes in a string do not form UTF-8") from e


def _bytes_of(match: re.Match[str], quote: str) -> bytes:
    hexadecimal, octal, short_code, long_code, escaped = match.groups()
    if hexadecimal or octal:
        code = int(hexadecimal, 16) if hexadecimal else int(octal, 8)
        if code < 256:
            return bytes([code])
    elif short_code or long_code:
        code = int(short_code or long_code, 16)
        if code < 0x110000 and not 0xD800 <= code < 0xE000:
            return chr(code).encode()
    elif escaped is None:
        return match[0].encode()
    elif escaped == quote or escaped in _SHORT:
        return bytes([_SHORT.get(escaped, ord(escaped))])
    raise LiteralError(f"{match[0]} is not an escape sequence of Go")
