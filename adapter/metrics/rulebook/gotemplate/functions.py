"""The functions of Go's `text/template` that rule files use, on the values of templates.

`and` and `or` are missing: they evaluate only as many arguments as they need, so they are part of the evaluator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias
from urllib.parse import quote

from adapter.metrics.rulebook.gotemplate.printf import print_line, print_values, printf
from adapter.metrics.rulebook.gotemplate.taint import TaintedNumber, substring, taint
from adapter.metrics.rulebook.gotemplate.values import UnfitValueError, Value, is_tainted, is_true, kind_of

# `html`, `js` and `urlquery`, as Go's `text/template` escapes texts for them.
#
# They are of no use in a query, but prometheus-adapter accepts a rule file that contains them.
_HTML: Final = str.maketrans({
    '"': "&#34;", "'": "&#39;", "&": "&amp;", "<": "&lt;", ">": "&gt;", "\x00": "\ufffd",
})  # fmt: skip
_JS: Final = {"\\": r"\\", "'": r"\'", '"': r"\"", "<": r"\u003C", ">": r"\u003E", "&": r"\u0026", "=": r"\u003D"}


def html(arguments: tuple[Value, ...]) -> str:
    """Return the printed arguments, escaped for HTML."""
    return _print_arguments(arguments).translate(_HTML)


def js(arguments: tuple[Value, ...]) -> str:
    """Return the printed arguments, escaped for a JavaScript string."""
    return "".join(map(_js_escaped, _print_arguments(arguments)))


def urlquery(arguments: tuple[Value, ...]) -> str:
    """Return the printed arguments, escaped for a value in the query of a URL."""
    return quote(_print_arguments(arguments), safe=" ", errors="replace").replace(" ", "+")


def _js_escaped(character: str) -> str:
    plain = character.isprintable() or character == "\x7f"
    return _JS.get(character) or (character if plain else f"\\u{ord(character):04X}")


def _print_arguments(arguments: tuple[Value, ...]) -> str:
    """Return what `print` prints for the arguments, with `<no value>` for nothing."""
    return print_values(tuple("<no value>" if value is None else value for value in arguments))


_Arguments: TypeAlias = "tuple[Value, ...]"


def _printf(arguments: _Arguments) -> Value:
    template = arguments[0]
    if not isinstance(template, str):
        raise UnfitValueError(f"printf: the format is {kind_of(template)}; it must be a string")
    return printf(template, arguments[1:])


def _not(arguments: _Arguments) -> Value:
    return not is_true(arguments[0])


def _len(arguments: _Arguments) -> Value:
    value = arguments[0]
    if isinstance(value, str):
        return len(value.encode(errors="surrogatepass"))
    if isinstance(value, (tuple, Mapping)):
        return len(value)
    raise UnfitValueError(f"len of {kind_of(value)}")


def _index(arguments: _Arguments) -> Value:
    value = arguments[0]
    if value is None:
        raise UnfitValueError("index of nothing")
    for key in arguments[1:]:
        value = _element(value, key)
    return value


def _element(value: Value, key: Value) -> Value:
    if isinstance(value, Mapping):
        if not isinstance(key, str):
            raise UnfitValueError(f"index: the key of a map must be a string, not {kind_of(key)}")
        return value.get(key, "")
    if isinstance(value, (str, tuple)):
        items = value.encode(errors="surrogatepass") if isinstance(value, str) else value
        element = items[_position(key, len(items) - 1, "index")]
        return TaintedNumber(element) if isinstance(element, int) and is_tainted(value) else element
    raise UnfitValueError(f"index of {kind_of(value)}")


def _slice(arguments: _Arguments) -> Value:
    value, bounds = arguments[0], arguments[1:]
    if not isinstance(value, (str, tuple)):
        raise UnfitValueError(f"slice of {kind_of(value)}")
    if len(bounds) > (2 if isinstance(value, str) else 3):
        raise UnfitValueError("slice: too many bounds")
    encoded = value.encode(errors="surrogatepass") if isinstance(value, str) else b""
    length = len(encoded) if isinstance(value, str) else len(value)
    positions = [_position(bound, length, "slice") for bound in bounds]
    if positions != sorted(positions):
        raise UnfitValueError(f"slice: the bounds {', '.join(map(str, positions))} do not ascend")
    start, end = (*positions, 0)[0], (*positions, length, length)[1]
    if isinstance(value, tuple):
        return value[start:end]
    return substring(value, _characters(encoded, start), _characters(encoded, end))


def _characters(encoded: bytes, position: int) -> int:
    """Return how many characters precede a position that is counted in bytes."""
    try:
        return len(encoded[:position].decode(errors="surrogatepass"))
    except UnicodeDecodeError as e:
        raise UnfitValueError("slice: the bounds, counted in bytes, cut a character") from e


def _position(value: Value, most: int, function: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise UnfitValueError(f"{function}: {kind_of(value)} cannot be used as a position")
    if not 0 <= value <= most:
        raise UnfitValueError(f"{function}: {value} is out of range")
    return value


def _eq(arguments: _Arguments) -> Value:
    first, others = arguments[0], arguments[1:]
    return any(_equal(first, other) for other in others)


def _ne(arguments: _Arguments) -> Value:
    return not _equal(*arguments)


def _equal(left: Value, right: Value) -> bool:
    if left is None or right is None:
        return left is right
    if _comparable(left) is not _comparable(right):
        raise UnfitValueError(f"{kind_of(left)} cannot be compared with {kind_of(right)}")
    return left == right


def _less(left: Value, right: Value) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        return left.encode(errors="surrogatepass") < right.encode(errors="surrogatepass")
    for kind in (int, float):
        if isinstance(left, kind) and isinstance(right, kind) and bool not in (type(left), type(right)):
            return left < right
    raise UnfitValueError(f"{kind_of(left)} and {kind_of(right)} have no order")


def _comparable(value: Value) -> type:
    for kind in (str, bool, int, float):
        if isinstance(value, kind):
            return kind
    raise UnfitValueError(f"{kind_of(value)} cannot be compared")


FUNCTIONS: Mapping[str, tuple[Callable[[_Arguments], Value], int, int | None]] = {
    "print": (print_values, 0, None),
    "printf": (_printf, 1, None),
    "println": (print_line, 0, None),
    "html": (html, 0, None),
    "js": (js, 0, None),
    "urlquery": (urlquery, 0, None),
    "not": (_not, 1, 1),
    "len": (_len, 1, 1),
    "index": (_index, 1, None),
    "slice": (_slice, 1, None),
    "eq": (_eq, 2, None),
    "ne": (_ne, 2, 2),
    "lt": (lambda arguments: _less(*arguments), 2, 2),
    "le": (lambda arguments: _less(*arguments) or _equal(*arguments), 2, 2),
    "gt": (lambda arguments: not (_less(*arguments) or _equal(*arguments)), 2, 2),
    "ge": (lambda arguments: not _less(*arguments), 2, 2),
}
"""The functions by name, each with its smallest and largest number of arguments."""

_TRACES_TAINT = frozenset({"print", "printf", "println", "index", "slice"})
"""Functions that already taint exactly the right parts of their value."""


def call(name: str, arguments: _Arguments) -> Value:
    """Return the function's value; raises UnfitValueError."""
    function, least, most = FUNCTIONS[name]
    if len(arguments) < least or (most is not None and len(arguments) > most):
        wanted = str(least) if least == most else f"at least {least}"
        raise UnfitValueError(f"{name} takes {wanted} arguments, got {len(arguments)}")
    value = function(arguments)
    if name in _TRACES_TAINT or isinstance(value, bool) or not is_tainted(arguments):
        return value
    if isinstance(value, str):
        return taint(value)
    return TaintedNumber(value) if isinstance(value, int) else value
