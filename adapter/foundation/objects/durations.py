"""Durations in the syntax of Go (`1m30s`, `1.5h`) and of Prometheus (`1h30m`, `7d`).

The two syntaxes are similar but differ: Go has fractions, signs and microseconds, and allows units in any order;
Prometheus has days, weeks and years, with each unit at most once, from large to small. Texts that other
programs also read are in the syntax of those programs; Tidewatch's own configuration and flags accept both syntaxes
(`parse_duration`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from adapter.foundation.objects.integers import INT64_MAX

_NANOSECONDS: Final = 10**9
LONGEST_SECONDS: Final = INT64_MAX / _NANOSECONDS
"""The longest duration of Go, and so of Prometheus and of Kubernetes: 292 years."""
_INT64_DIGITS: Final = 19

_GO_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # with the micro sign, U+00B5
    "μs": 10**3,  # with the Greek letter mu, U+03BC: Go accepts both
    "ms": 10**6,
    "s": _NANOSECONDS,
    "m": 60 * _NANOSECONDS,
    "h": 3600 * _NANOSECONDS,
}
_UNITS: Final = {**_GO_UNITS, **{unit: days * 86_400 * _NANOSECONDS for unit, days in (("d", 1), ("w", 7), ("y", 365))}}
_GO_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]+)")

_ZEROS: Final = re.compile(r"(?<=[hm])0[ms]")

_PROMETHEUS_UNITS: Final = {
    "y": 365 * 86_400_000,
    "w": 7 * 86_400_000,
    "d": 86_400_000,
    "h": 3_600_000,
    "m": 60_000,
    "s": 1000,
    "ms": 1,
}
_PROMETHEUS_SHAPE: Final = re.compile(
    "".join(rf"(?:0*([0-9]{{1,{_INT64_DIGITS}}}){unit})?" for unit in _PROMETHEUS_UNITS)
)


class DurationError(ValueError):
    """The text is not a duration; the message says what is wrong with it."""


class TooLongDurationError(DurationError):
    """The text is a duration that is longer than 292 years."""

    def __init__(self, text: str) -> None:
        """Take the text of the duration."""
        super().__init__(f"{text!r} is too long: write at most 292 years")


def parse_duration(text: str) -> float:
    """Return the seconds of a duration as configuration files and flags write it. Raises DurationError.

    The syntax is Go's, extended by Prometheus' days, weeks and years, so it includes both syntaxes.
    """
    return _nanoseconds(text, _UNITS) / _NANOSECONDS


def format_duration(seconds: float) -> str:
    """Return a duration as people write it: `14d`, `1h30m`, `1.5s`. `seconds` must be finite and at least 0."""
    days, rest = divmod(seconds, 86_400)
    text = _ZEROS.sub("", format_go_duration(rest))
    return f"{days:.0f}d{text if rest else ''}" if days else text


def parse_go_duration(text: str) -> float:
    """Return the seconds of a duration in Go's syntax. Raises DurationError."""
    return go_nanoseconds(text) / _NANOSECONDS


def go_nanoseconds(text: str) -> int:
    """Return the nanoseconds of a duration, exactly as Go's time.ParseDuration does. Raises DurationError."""
    return _nanoseconds(text, _GO_UNITS)


def _nanoseconds(text: str, units: Mapping[str, int]) -> int:
    unsigned = text[1:] if text[:1] in {"+", "-"} else text
    if unsigned == "0":
        return 0
    total = position = 0
    while position < len(unsigned):
        part = _GO_PART.match(unsigned, position)
        total += _go_part_nanoseconds(text, part, units)
        position = part.end() if part else len(unsigned)
    if not unsigned:
        raise _not_go(text, "it is empty")
    if total > INT64_MAX + (text[0] == "-"):
        raise TooLongDurationError(text)
    return -total if text[0] == "-" else total


def format_go_duration(seconds: float) -> str:
    """Return a duration as Go prints it, rounded to nanoseconds: `1m30s`, `1.5ms`, `0s`. `seconds` must be finite."""
    nanoseconds = round(Fraction(seconds) * _NANOSECONDS)
    sign, magnitude = ("-" if nanoseconds < 0 else ""), abs(nanoseconds)
    if magnitude < _NANOSECONDS:
        return sign + _below_a_second(magnitude)
    whole, fraction = divmod(magnitude, _NANOSECONDS)
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    text = f"{_decimal(second * _NANOSECONDS + fraction, _NANOSECONDS)}s"
    if minutes:
        text = f"{minute}m{text}"
    return f"{sign}{hours}h{text}" if hours else sign + text


def parse_prometheus_duration(text: str) -> float:
    """Return the seconds of a duration in Prometheus' syntax. Raises DurationError."""
    if text == "0":
        return 0.0
    shape = _PROMETHEUS_SHAPE.fullmatch(text)
    if not text or shape is None:
        raise DurationError(
            f"{text!r} is not a Prometheus duration: write units from large to small, such as 1h30m or 7d"
        )
    counts = (int(count or 0) for count in shape.groups())
    milliseconds = sum(count * unit for count, unit in zip(counts, _PROMETHEUS_UNITS.values(), strict=True))
    if milliseconds * 10**6 > INT64_MAX:
        raise TooLongDurationError(text)
    return milliseconds / 1000


def _not_go(text: str, why: str) -> DurationError:
    return DurationError(f"{text!r} is not a duration: {why}: write numbers with units, such as 1m30s or 500ms")


def _go_part_nanoseconds(text: str, part: re.Match[str] | None, units: Mapping[str, int]) -> int:
    """Return the nanoseconds of one number with its unit."""
    if part is None:
        raise _not_go(text, "a number has no unit")
    whole, fraction, unit = part.group(1), part.group(2) or "", part.group(3)
    if not whole and not fraction:
        raise _not_go(text, f"no number stands before {unit!r}")
    size = units.get(unit)
    if size is None:
        raise _not_go(text, f"{unit!r} is not a unit of time")
    if len(whole := whole.lstrip("0")) > _INT64_DIGITS:
        raise TooLongDurationError(text)
    return int(whole or "0") * size + _go_fraction(fraction, size)


def _go_fraction(digits: str, size: int) -> int:
    """Return 0.digits x size as Go computes it: as a float, truncated, from the digits that fit into an int64."""
    fraction, scale = 0, 1.0
    for digit in digits:
        longer = fraction * 10 + int(digit)
        if fraction > INT64_MAX // 10 or longer > INT64_MAX + 1:
            break
        fraction, scale = longer, scale * 10
    return int(float(fraction) * (size / scale))


def _below_a_second(nanoseconds: int) -> str:
    for unit, size in (("ns", 1), ("µs", 10**3), ("ms", 10**6)):
        if nanoseconds < size * 1000:
            return f"{_decimal(nanoseconds, size)}{unit}" if nanoseconds else "0s"
    raise ValueError(f"{nanoseconds} ns is not below a second")


def _decimal(amount: int, size: int) -> str:
    """Return amount / size without trailing zeros; size is a power of ten."""
    whole, fraction = divmod(amount, size)
    digits = f"{fraction:0{len(str(size)) - 1}}".rstrip("0") if fraction else ""
    return f"{whole}.{digits}" if digits else str(whole)
