"""The values of templates: strings, booleans, numbers, lists, maps with string keys, nothing, and the data itself.

Their truth, their printed form and their names follow Go's packages `text/template` and `fmt`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from adapter.metrics.rulebook.gotemplate.taint import Tainted, TaintedNumber, concatenate, taint


class UnfitValueError(ValueError):
    """A value does not fit where it is used; the message says why."""


@dataclass(frozen=True, slots=True)
class Struct:
    """A value with a fixed set of fields, such as the data that a template is executed with."""

    fields: Mapping[str, Value]


Value: TypeAlias = "str | bool | int | float | tuple[Value, ...] | Mapping[str, Value] | Struct | None"


def is_true(value: Value) -> bool:
    """Return whether the value is true for `if`: anything but zero, nothing and empty values."""
    return True if isinstance(value, Struct) else bool(value)


def kind_of(value: Value) -> str:
    """Return the kind of the value, for messages."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "a boolean"
    names = (
        (str, "a string"),
        (int, "a whole number"),
        (float, "a number"),
        (tuple, "a list"),
        (Struct, "all the data"),
    )
    return next((name for kind, name in names if isinstance(value, kind)), "a map")


def field_of(value: Value, name: str) -> Value:
    """Return a field of the data, or the value of a key of a map; None if the map has no such key."""
    if value is None:
        return None
    if isinstance(value, Struct):
        if name not in value.fields:
            known = ", ".join(f".{field}" for field in value.fields)
            raise UnfitValueError(f"there is no field .{name}; the fields are {known}")
        return value.fields[name]
    if isinstance(value, Mapping):
        return value.get(name)
    raise UnfitValueError(f"there is no field .{name} in {kind_of(value)}")


def printed_value(value: Value, nothing: str = "<nil>") -> str:
    """Return the value as `%v` prints it."""
    if isinstance(value, str):
        return value
    if isinstance(value, (tuple, Mapping)):
        return shown_all(value, printed_value)
    if isinstance(value, Struct):
        raise UnfitValueError("this prints all the data at once; name the field that is meant")
    if value is None:
        return nothing
    if isinstance(value, bool):
        return "true" if value else "false"
    text = shown_float(value) if isinstance(value, float) else str(value)
    return taint(text) if is_tainted(value) else text


def shown_all(values: tuple[Value, ...] | Mapping[str, Value], show: Callable[[Value], str]) -> str:
    """Return a list or a map as Go prints it, each element as `show` returns it, and maps in the order of keys."""
    if isinstance(values, tuple):
        return concatenate(("[", *interleave_spaces(map(show, values)), "]"))
    pairs = (concatenate((show(key), ":", show(values[key]))) for key in sorted(values))
    return concatenate(("map[", *interleave_spaces(pairs), "]"))


def interleave_spaces(texts: Iterable[str]) -> Iterator[str]:
    """Yield the strings with a space between neighbours."""
    for position, text in enumerate(texts):
        if position:
            yield " "
        yield text


def is_tainted(value: Value) -> bool:
    """Return whether any part of the value came from a request."""
    if isinstance(value, Mapping):
        return any(map(is_tainted, (*value, *value.values())))
    return any(map(is_tainted, value)) if isinstance(value, tuple) else isinstance(value, (Tainted, TaintedNumber))


def shown_float(value: float) -> str:
    """Return the shortest text of a finite number, as `%v` prints it: with an exponent below 1e-4 and from 1e6 on."""
    _, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int), "literals are finite"
    scale = len(digits) + exponent - 1
    if not -4 <= scale < 6:
        return f"{value:.{len(digits) - 1}e}"
    return f"{Decimal(repr(value)).normalize():f}"
