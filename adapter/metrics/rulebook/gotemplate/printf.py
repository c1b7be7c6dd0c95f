"""`printf` and related functions, which format strings, numbers, booleans, lists and maps as Go's package `fmt` does.

Where Go writes a complaint into the output (`%!d(string=x)`), an error is raised, since the output is a query.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from adapter.foundation.promql.quoting import go_quoted
from adapter.metrics.rulebook.gotemplate.taint import Piece, Tainted, concatenate, pieces_of, substring, taint
from adapter.metrics.rulebook.gotemplate.values import (
    UnfitValueError,
    Value,
    interleave_spaces,
    is_tainted,
    kind_of,
    printed_value,
    shown_all,
)

_VERB = re.compile(r"%(?P<flags>[-+# 0]*)(?P<width>[0-9]*)(?:\.(?P<precision>[0-9]*))?(?P<verb>.?)", re.DOTALL)
_NOT_SUPPORTED = re.compile(r"%[-+ 0]*#.*[veEfFgG]|%[-# 0]*\+.*q", re.DOTALL)
"""Formats for Go syntax, for all digits of a number, and for strings in ASCII."""
_NOT_IN_BACK_QUOTES = re.compile("[`\x00-\x08\x0a-\x1f\x7f\ufeff]")
_PREFIXES: Final = {"o": "0", "b": "0b", "x": "0x", "X": "0X"}
_WIDEST: Final = 1000
"""Limit on a width or precision, in characters: a query needs no more, and memory is limited."""

_MOST_DIGITS: Final = 100
"""Limit on the digits of a width or precision, including leading zeros."""

_Format: TypeAlias = "re.Match[str]"


def printf(template: str, values: tuple[Value, ...]) -> str:
    """Return the values, formatted by the template. Raises UnfitValueError."""
    waiting = deque(values)
    parts: list[str] = []
    end = 0
    for match in _VERB.finditer(template):
        parts.append(template[end : match.start()])
        parts.append("%" if match["verb"] == "%" else _next_formatted(waiting, match))
        end = match.end()
    if waiting:
        raise UnfitValueError(f"printf: {len(waiting)} values more than the format {template!r} has verbs")
    text = concatenate((*parts, template[end:]))
    return taint(text) if isinstance(template, Tainted) else text


def print_values(values: tuple[Value, ...]) -> str:
    """Return what `print` prints: there is a space between two neighbours if neither is a string."""
    parts: list[str] = []
    for position, value in enumerate(values):
        neighbours = (value, values[position - 1])
        spaced = position and not any(isinstance(neighbour, str) for neighbour in neighbours)
        parts += [" " if spaced else "", printed_value(value)]
    return concatenate(parts)


def print_line(values: tuple[Value, ...]) -> str:
    """Return what `println` prints: a space between all values, and a line end."""
    return concatenate((*interleave_spaces(map(printed_value, values)), "\n"))


def _next_formatted(waiting: deque[Value], match: _Format) -> str:
    _check(match)
    if not waiting:
        raise UnfitValueError(f"printf: no value is left for {match[0]}")
    return _format_value(waiting.popleft(), match)


def _check(match: _Format) -> None:
    if match["verb"] not in _VERBS or _NOT_SUPPORTED.fullmatch(match[0]):
        raise UnfitValueError(f"printf: {match[0]!r} is not supported")
    if _asks_for_too_much(match["width"]) or _asks_for_too_much(match["precision"]):
        raise UnfitValueError(f"printf: {match[0][:_MOST_DIGITS]} asks for more than {_WIDEST} characters")


def _asks_for_too_much(digits: str | None) -> bool:
    # Python refuses to parse thousands of digits.
    return digits is not None and (len(digits) > _MOST_DIGITS or int(digits or 0) > _WIDEST)


def _format_value(value: Value, match: _Format) -> str:
    if isinstance(value, (tuple, Mapping)):
        return shown_all(value, lambda element: _format_value(element, match))
    formatted = _VERBS[match["verb"]](value, match)
    if formatted is None:
        raise UnfitValueError(f"printf: {match[0]} cannot show {kind_of(value)}")
    padded = _pad_text(formatted, match, value)
    return taint(padded) if is_tainted(value) and not isinstance(padded, Tainted) else padded


def _pad_text(text: str, match: _Format, value: Value) -> str:
    """Return the text of a value, padded to the requested width; elements of lists and maps are padded one by one."""
    missing = int(match["width"] or 0) - len(text)
    if missing <= 0:
        return text
    if "-" in match["flags"]:
        return concatenate((text, " " * missing))
    as_character = match["verb"] in "cq"
    whole = isinstance(value, int) and not isinstance(value, bool) and not as_character
    # Integers already have their zeros, or must not have any.
    if "0" in match["flags"] and not whole:
        signed = not isinstance(value, str) and not as_character and text[:1] in ("+", "-", " ")
        return concatenate((text[:signed], "0" * missing, substring(text, signed, None)))
    return concatenate((" " * missing, text))


def _any(value: Value, match: _Format) -> str | None:
    if isinstance(value, str):
        return _text(value, match)
    if isinstance(value, int) and not isinstance(value, bool):
        return _whole(value, match)
    return _general(value, match) if isinstance(value, float) else printed_value(value)


def _text(value: Value, match: _Format) -> str | None:
    if not isinstance(value, str):
        return None
    return value if match["precision"] is None else substring(value, 0, _precision(match))


def _precision(match: _Format) -> int | None:
    """Return the precision, which is 0 if no digits follow its dot; None without a dot."""
    return None if match["precision"] is None else int(match["precision"] or 0)


def _quote_value(value: Value, match: _Format) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 0x110000:
        inner = go_quoted(chr(value))[1:-1].replace('\\"', '"')
        return "'" + ("\\'" if inner == "'" else inner) + "'"
    text = _text(value, match)
    if text is None:
        return None
    if "#" in match["flags"] and not _NOT_IN_BACK_QUOTES.search(text):
        return concatenate(("`", text, "`"))
    return concatenate(('"', *map(_inside_quotes, pieces_of(text)), '"'))


def _inside_quotes(piece: Piece) -> str:
    """Return a part of a string as it is written in quotes. Tainted parts are escaped later, in the query."""
    return taint(piece.text) if piece.tainted else go_quoted(piece.text)[1:-1]


def _whole(value: Value, match: _Format) -> str | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    base = match["verb"] if match["verb"] in _PREFIXES else "d"
    if value == 0 and match["precision"] is not None and not int(match["precision"] or 0):
        return ""
    sign = _sign(value, match)
    digits = format(abs(value), base).zfill(_fewest_digits(sign, match))
    prefix = _PREFIXES.get(base, "") if "#" in match["flags"] else ""
    return sign + (digits if prefix == "0" and digits.startswith("0") else prefix + digits)


def _fewest_digits(sign: str, match: _Format) -> int:
    """Return the least number of digits; as in Go, a width filled with zeros does not count the prefix."""
    if match["precision"] is not None:
        return int(match["precision"] or 0)
    fills = "0" in match["flags"] and "-" not in match["flags"]
    return int(match["width"] or 0) - len(sign) if fills else 0


def _hexadecimal(value: Value, match: _Format) -> str | None:
    if not isinstance(value, str):
        return _whole(value, match)
    # The precision counts bytes here.
    shown_bytes = value.encode(errors="surrogatepass")[: _precision(match)]
    flags = match["flags"]
    prefix = "0x" if "#" in flags and shown_bytes else ""
    digits = prefix + shown_bytes.hex(*(" ",) if " " in flags else ())
    digits = digits.replace(" ", f" {prefix}")
    return digits.upper() if match["verb"] == "X" else digits


def _character(value: Value, _: _Format) -> str | None:
    fits = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 0x110000
    if not fits or not isinstance(value, int):
        return None
    # A surrogate is no character: it could be neither sent nor put into a pattern.
    return "\ufffd" if 0xD800 <= value < 0xE000 else chr(value)


def _boolean(value: Value, _: _Format) -> str | None:
    return printed_value(value) if isinstance(value, bool) else None


def _float(value: Value, match: _Format) -> str | None:
    if not isinstance(value, float):
        return None
    precision = _precision(match)
    return _sign(value, match) + format(abs(value), f".{6 if precision is None else precision}{match['verb']}")


def _general(value: Value, match: _Format) -> str | None:
    if not isinstance(value, float):
        return None
    if match["precision"] is None:
        text = printed_value(abs(value))
        return _sign(value, match) + (text.upper() if match["verb"] == "G" else text)
    return _sign(value, match) + format(abs(value), f".{match['precision'] or 0}{match['verb'].replace('v', 'g')}")


def _sign(value: float, match: _Format) -> str:
    if math.copysign(1, value) < 0:
        return "-"
    return "+" if "+" in match["flags"] and match["verb"] != "v" else " " if " " in match["flags"] else ""


_VERBS: dict[str, Callable[[Value, _Format], str | None]] = {
    "v": _any,
    "s": _text,
    "q": _quote_value,
    "d": _whole,
    "o": _whole,
    "b": _whole,
    "x": _hexadecimal,
    "X": _hexadecimal,
    "c": _character,
    "t": _boolean,
    "e": _float,
    "E": _float,
    "f": _float,
    "F": _float,
    "g": _general,
    "G": _general,
}
