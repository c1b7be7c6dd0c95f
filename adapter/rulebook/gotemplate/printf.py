"""`printf` and its kin, as Go's package `fmt` formats texts, numbers, booleans, lists and maps.

Where Go would write its complaint into the output (`%!d(string=x)`), this is an error: the output is a query.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from adapter.rulebook.gotemplate.values import UnfitValueError, Value, kind_of, shown
from adapter.rulebook.quoting import go_quoted

_VERB = re.compile(r"%(?P<flags>[-+# 0]*)(?P<width>\d*)(?:\.(?P<precision>\d*))?(?P<verb>.?)", re.DOTALL)
_WIDEST = 1000
"""Characters that a width or precision may ask for: a query has no use for more, and memory has limits."""

_Format: TypeAlias = "re.Match[str]"


def printf(template: str, values: tuple[Value, ...]) -> str:
    """Return what `printf` makes of the template; raises UnfitValueError."""
    waiting = list(values)

    def formatted(match: _Format) -> str:
        if match["verb"] == "%":
            return "%"
        _check(match)
        if not waiting:
            raise UnfitValueError(f"printf: no value is left for {match[0]}")
        return _padded(_formatted(waiting.pop(0), match), match)

    text = _VERB.sub(formatted, template)
    if waiting:
        raise UnfitValueError(f"printf: {len(waiting)} more values than the format {template!r} has verbs for")
    return text


def print_values(values: tuple[Value, ...]) -> str:
    """Return what `print` makes: a space between neighbours neither of which is a text."""
    text = ""
    for position, value in enumerate(values):
        neighbours = (value, values[position - 1])
        spaced = position and not any(isinstance(neighbour, str) for neighbour in neighbours)
        text += (" " if spaced else "") + shown(value)
    return text


def print_line(values: tuple[Value, ...]) -> str:
    """Return what `println` makes: a space between all, and a line end."""
    return " ".join(map(shown, values)) + "\n"


def _check(match: _Format) -> None:
    if match["verb"] not in _VERBS:
        raise UnfitValueError(f"printf: {match[0]!r} is not supported")
    if int(match["width"] or 0) > _WIDEST or int(match["precision"] or 0) > _WIDEST:
        raise UnfitValueError(f"printf: {match[0]} asks for more than {_WIDEST} characters")


def _padded(text: str, match: _Format) -> str:
    width = int(match["width"] or 0)
    if "-" in match["flags"]:
        return text.ljust(width)
    signed = text[:1] in ("+", "-", " ") and text[1:2].isdigit()
    if "0" in match["flags"] and match["verb"] not in "sqv":
        return text[0] + text[1:].rjust(width - 1, "0") if signed else text.rjust(width, "0")
    return text.rjust(width)


def _formatted(value: Value, match: _Format) -> str:
    if isinstance(value, tuple):
        return f"[{' '.join(_formatted(element, match) for element in value)}]"
    if isinstance(value, Mapping):
        pairs = (f"{_formatted(key, match)}:{_formatted(value[key], match)}" for key in sorted(value))
        return f"map[{' '.join(pairs)}]"
    formatted = _VERBS[match["verb"]](value, match)
    if formatted is None:
        raise UnfitValueError(f"printf: {match[0]} cannot show {kind_of(value)}")
    return formatted


def _any(value: Value, match: _Format) -> str | None:
    if isinstance(value, str):
        return _text(value, match)
    if isinstance(value, int) and not isinstance(value, bool):
        return _whole(value, match)
    return _general(value, match) if isinstance(value, float) else shown(value)


def _text(value: Value, match: _Format) -> str | None:
    if not isinstance(value, str):
        return None
    return value if match["precision"] is None else value[: int(match["precision"] or 0)]


def _quoted(value: Value, match: _Format) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 0x110000:
        inner = go_quoted(chr(value))[1:-1].replace('\\"', '"')
        return "'" + ("\\'" if inner == "'" else inner) + "'"
    text = _text(value, match)
    if text is None:
        return None
    raw = "#" in match["flags"] and "`" not in text and all(mark.isprintable() or mark == "\t" for mark in text)
    return f"`{text}`" if raw else go_quoted(text)


def _whole(value: Value, match: _Format) -> str | None:
    base = {"o": "o", "b": "b", "x": "x", "X": "X"}.get(match["verb"], "d")
    if not isinstance(value, int) or isinstance(value, bool) or match["precision"] is not None:
        return None
    prefix = {"o": "0", "b": "0b", "x": "0x", "X": "0X"}.get(base, "") if "#" in match["flags"] else ""
    return _sign(value < 0, match) + prefix + format(abs(value), base)


def _hexadecimal(value: Value, match: _Format) -> str | None:
    text = _text(value, match)
    if text is None:
        return _whole(value, match)
    flags = match["flags"]
    prefix = "0x" if "#" in flags and text else ""
    digits = prefix + text.encode().hex(*(" ",) if " " in flags else ())
    digits = digits.replace(" ", f" {prefix}")
    return digits.upper() if match["verb"] == "X" else digits


def _character(value: Value, _: _Format) -> str | None:
    fits = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 0x110000
    return chr(value) if fits and isinstance(value, int) else None


def _boolean(value: Value, _: _Format) -> str | None:
    return shown(value) if isinstance(value, bool) else None


def _float(value: Value, match: _Format) -> str | None:
    if not isinstance(value, float):
        return None
    precision = int(match["precision"] or 0) if match["precision"] is not None else 6
    return _sign(value < 0, match) + format(abs(value), f".{precision}{match['verb']}")


def _general(value: Value, match: _Format) -> str | None:
    if not isinstance(value, float):
        return None
    if match["precision"] is None:
        text = shown(abs(value))
        return _sign(value < 0, match) + (text.upper() if match["verb"] == "G" else text)
    return _sign(value < 0, match) + format(abs(value), f".{match['precision'] or 0}{match['verb'].replace('v', 'g')}")


def _sign(negative: bool, match: _Format) -> str:  # noqa: FBT001 - the one thing that a sign depends on
    return "-" if negative else "+" if "+" in match["flags"] else " " if " " in match["flags"] else ""


_VERBS: dict[str, Callable[[Value, _Format], str | None]] = {
    "v": _any,
    "s": _text,
    "q": _quoted,
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
