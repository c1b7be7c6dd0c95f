"""The single values of documents: texts, numbers, durations, percentages, quantities and names."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from adapter.foundation.documents.shapes import OutOfRangeError, Scalar, Schema, WrongValueError
from adapter.foundation.documents.tree import did_you_mean, read_boolean, shorten
from adapter.foundation.objects.durations import TooLongDurationError, format_duration, parse_duration
from adapter.foundation.objects.names import (
    is_namespace_name,
    is_subdomain_name,
    label_key_problem,
    label_value_problem,
)
from adapter.foundation.objects.quantities import Quantity, parse_quantity
from adapter.foundation.objects.selectors import SelectorError, parse_selector
from adapter.foundation.promql.malformed import flaw_of
from adapter.foundation.promql.quoting import is_quoted_label_name

N = TypeVar("N", int, float, Fraction)

_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WHOLE: Final = re.compile(r"-?(?:0|[1-9][0-9]*)")
_INT64: Final = 2**63
_LONGEST_WHOLE: Final = 20
"""Length of the longest int64, including its sign; Python refuses to convert texts of thousands of digits."""
_PERCENT: Final = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)%")
_ANY: Final[Schema] = {"type": ["string", "number", "boolean"]}
"""A text may be written without quotes even if YAML would read another type: `shard: 0` is the text `0`."""
_DURATION: Final[Schema] = {
    "type": "string",
    "pattern": "^[+-]?(0|(([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h|d|w|y))+)$",
}
_DURATION_OR_ZERO: Final[Schema] = {**_DURATION, "type": ["string", "integer"], "minimum": 0, "maximum": 0}
_QUANTITY: Final[Schema] = {
    "type": ["string", "number"],
    "pattern": "^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+|[numkMGTPE]|[KMGTPE]i)?$",
    "minimum": 0,
}


@dataclass(frozen=True, slots=True)
class Bounds:
    """The numbers that are allowed. `above` and `below` exclude the limit itself."""

    least: float = -math.inf
    most: float = math.inf
    above: bool = False
    below: bool = False

    def holds(self, value: float | Fraction) -> bool:
        """Return whether a number is allowed."""
        is_enough = value > self.least if self.above else value >= self.least
        return is_enough and (value < self.most if self.below else value <= self.most)

    def words(self, shown: Callable[[float], str] = "{:.15g}".format) -> str:
        """Return the limits as the end of a sentence, such as ` from 1 to 10`; empty if there are none."""
        least, most = shown(self.least), shown(self.most)
        if math.isinf(self.least):
            return "" if math.isinf(self.most) else f" {'below' if self.below else 'up to'} {most}"
        if math.isinf(self.most):
            return f" above {least}" if self.above else f" of {least} or more"
        if not (self.above or self.below):
            return f" from {least} to {most}"
        end = f"below {most}" if self.below else f"up to {most}"
        return f" {'above' if self.above else 'of at least'} {least} and {end}"

    def schema(self) -> Schema:
        """Return the JSON Schema of the limits."""
        least = {} if math.isinf(self.least) else {"exclusiveMinimum" if self.above else "minimum": self.least}
        return least | ({} if math.isinf(self.most) else {"exclusiveMaximum" if self.below else "maximum": self.most})


ANY_NUMBER: Final = Bounds()


def parse_number(text: str) -> float:
    """Return the number that the text denotes in JSON. Raises ValueError."""
    value = float(text) if _NUMBER.fullmatch(text) else math.inf
    if math.isinf(value):
        raise ValueError(text)
    return value


def parse_whole(text: str) -> int:
    """Return the int64 that the text denotes in JSON, without a fraction or an exponent. Raises ValueError."""
    value = int(text) if _WHOLE.fullmatch(text) and len(text) <= _LONGEST_WHOLE else _INT64
    if not -_INT64 <= value < _INT64:
        raise ValueError(text)
    return value


def number(limits: Bounds = ANY_NUMBER, *, quoted: bool = False) -> Scalar[float]:
    """Return the shape of a number that is within limits and may have a fraction."""
    return _number("number", ", such as 16 or 2.5", parse_number, limits, _NUMBER.pattern if quoted else "")


def whole(least: float = -math.inf, most: float = math.inf, *, quoted: bool = False, fix: str = "") -> Scalar[int]:
    """Return the shape of a whole number within limits."""
    limits = Bounds(least, most)
    return _number("whole number", ", such as 16", parse_whole, limits, _WHOLE.pattern if quoted else "", fix)


def _number(name: str, such: str, parse: Callable[[str], N], limits: Bounds, quoted: str, fix: str = "") -> Scalar[N]:
    kind = "integer" if name == "whole number" else "number"
    schema = {"type": [kind, "string"], "pattern": f"^{quoted}$"} if quoted else {"type": kind}
    fix = fix or f"write a {name}{limits.words() or such}"
    parse = partial(_within, parse, limits)
    return Scalar(f"a {name}", fix, parse, schema | limits.schema(), lambda value: value, unquoted=not quoted)


def duration(least: float = 0.0, most: float = math.inf) -> Scalar[float]:
    """Return the shape of a duration such as `90s`, `1h30m` or `14d`, in seconds."""

    def parse(text: str) -> float:
        try:
            seconds = parse_duration(text)
        except TooLongDurationError:
            raise OutOfRangeError("write at most 292y" if math.isinf(most) else limits) from None
        if not least <= seconds <= most:
            raise OutOfRangeError(limits)
        return seconds

    limits = f"write a duration{Bounds(least, most).words(_shown_seconds)}"
    fix = "write numbers with units, such as 90s, 1h30m or 14d"
    return Scalar("a duration", fix, parse, _DURATION if least > 0 else _DURATION_OR_ZERO, format_duration)


def percentage(limits: Bounds) -> Scalar[float]:
    """Return the shape of a percentage such as `5%`, which is read as a ratio; the limits are in percent."""

    def parse(text: str) -> float:
        found = _PERCENT.fullmatch(text)
        if found is None:
            raise ValueError(text)
        return float(_within(Fraction, limits, found[1]) / 100)

    fix = f"write a percentage{limits.words('{:g}%'.format)}, such as 5%"
    schema = {"type": "string", "pattern": f"^{_PERCENT.pattern}$"}
    return Scalar("a percentage", fix, parse, schema, lambda ratio: f"{round(ratio * 100, 9):g}%")


def _shown_seconds(seconds: float) -> str:
    return "" if math.isinf(seconds) else format_duration(seconds)


def _within(parse: Callable[[str], N], limits: Bounds, text: str) -> N:
    value = parse(text)
    if not limits.holds(value):
        raise OutOfRangeError
    return value


def _quantity(text: str) -> Quantity:
    amount = parse_quantity(text)
    if amount.nanos < 0:
        raise OutOfRangeError("write 0 or more")
    return amount


def one_of(names: Iterable[str], what: str) -> Scalar[str]:
    """Return the shape of a name from a fixed set; `what` describes the set, such as `a model`."""
    known = tuple(map(str, names))
    fix = f"write {'one of ' if len(known) > 1 else ''}{', '.join(known)}"

    def parse(text: str) -> str:
        if text not in known:
            raise WrongValueError(f"{shorten(text)!r} is not {what}", did_you_mean(text, known))
        return text

    return Scalar(what, fix, parse, {"type": "string", "enum": list(known)})


def text(message: str = "the string is empty", fix: str = "write a value, or remove the key") -> Scalar[str]:
    """Return the shape of a text that is not empty; `message` and `fix` are for an empty text."""

    def parse(value: str) -> str:
        if not value.strip():
            raise WrongValueError(message, fix)
        return value

    return Scalar("a string", "write a string", parse, _ANY)


def validated_text(name: str, problem: Callable[[str], str | bool | None], fix: str) -> Scalar[str]:
    """Return the shape of a text for which `problem` returns nothing; for others it returns the reason, or True."""

    def parse(value: str) -> str:
        wrong = problem(value)
        if wrong:
            why = f": {wrong}" if isinstance(wrong, str) else ""
            raise WrongValueError(f"{shorten(value)!r} is not {name}{why}")
        return value

    return Scalar(name, fix, parse, _ANY)


def _selector(value: str) -> str:
    try:
        return parse_selector(value).text
    except SelectorError as error:
        raise WrongValueError(f"the selector cannot be read: {str(error).partition(': write ')[0]}") from None


def _query(value: str) -> str:
    if not value.strip():
        raise WrongValueError("the query is empty", "write the PromQL of a query")
    if flaw := flaw_of(value):
        raise WrongValueError(f"no version of Prometheus can parse the query: {flaw}", "correct it")
    return value


BOOLEAN: Final = Scalar(
    "true or false", "write true or false", read_boolean, {"type": "boolean"}, lambda value: value, unquoted=True
)
TEXT: Final = text()
TEXTS_MAY_BE_EMPTY: Final = Scalar("a string", "write a string", str, _ANY)
QUERY: Final = Scalar("a string", "write a string", _query, _ANY)
PATH: Final = TEXT.then(Path)
QUANTITY: Final = Scalar("a quantity", "write a quantity, such as 100m or 64Mi", _quantity, _QUANTITY)
SELECTOR: Final = Scalar("a string", "write a label selector as for kubectl, such as tier=dns", _selector, _ANY)
NAMESPACE: Final = validated_text(
    "the name of a namespace",
    lambda value: not is_namespace_name(value),
    "write at most 63 lower-case letters, digits and -, with a letter or digit at both ends",
)
OBJECT_NAME: Final = validated_text(
    "the name of an object",
    lambda value: not is_subdomain_name(value),
    "write at most 253 lower-case letters, digits, - and ., with a letter or digit at both ends of each part",
)
"""The name of an object of a kind that allows only DNS names; all kinds that are scaled or hold a configuration do."""
LABEL_KEY: Final = validated_text("a label key", label_key_problem, "write the key alone, such as example.com/pool")
RESOURCE_NAME: Final = validated_text(
    "the name of a resource", label_key_problem, "write a name such as nvidia.com/gpu"
)
LABEL_VALUE: Final = validated_text("a label value", label_value_problem, "correct it")
TAINT_KEY: Final = validated_text("a taint key", label_key_problem, "write the key alone")
PROMETHEUS_LABEL: Final = validated_text(
    "the name of a Prometheus label",
    lambda value: not is_quoted_label_name(value),
    "write the name of the label alone, such as namespace",
)
"""It may have the signs of OpenTelemetry's names: a query contains it as `label_in_query` returns it."""
