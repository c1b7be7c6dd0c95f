"""Quantities of Kubernetes, such as `1500m`, `2Gi` and `12e6`.

Metric values and resource requests are quantities, which the autoscaler compares in integer milli-units. Floats would
add rounding errors, so all arithmetic here uses exact integers or decimals. The rules are those of
`k8s.io/apimachinery/pkg/api/resource`. The only difference is that texts without a digit (`.`, `Ki`) are refused: the
grammar there forbids them, although the parser sometimes accepts them as zero.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import total_ordering
from typing import Final

from adapter.foundation.objects.integers import INT64_MAX

_NANO: Final = 10**9
_LONGEST_TEXT: Final = 1000
_LARGEST_EXPONENT: Final = 1000
_EXACT_INTEGERS_FROM: Final = 9.2e15
"""From this value on, int64 milli-units overflow, and every float is an integer."""
_MOST_WITH_MILLI_UNITS: Final = INT64_MAX // 1000
_LEAST_READ_BY_GO: Final = -(10**18)
"""From here down, in thousandths, Go misreads numbers of 19 digits: it takes `-1000000000000000500m` for about -2e9."""

_SHAPE: Final = re.compile(r"([+-]?)(?=\.?[0-9])([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*(?:[+-]?[0-9]*))")
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]+)")
_DECIMAL_SUFFIXES: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIXES: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_BY_EXPONENT: Final = {exponent: suffix for suffix, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_BY_STEPS: Final = ("", *_BINARY_SUFFIXES)


class QuantityError(ValueError):
    """The text is not a quantity; the message says what is wrong with it."""


class Format(StrEnum):
    """The format of a quantity, on which its value does not depend."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """An exact amount. Quantities compare by value, whatever their formats."""

    nanos: int
    """The amount in billionths, the smallest unit of a quantity."""
    format: Format = Format.DECIMAL_SI

    def __eq__(self, other: object) -> bool:
        return self.nanos == other.nanos if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __add__(self, other: Quantity) -> Quantity:
        """Return the sum, in the format of the first amount that is not zero."""
        return Quantity(self.nanos + other.nanos, self.format if self.nanos else other.format)

    def __str__(self) -> str:
        """Return the canonical form: the largest suffix for which the number has no fraction."""
        if self.format is Format.BINARY_SI and abs(self.nanos) >= 1024 * _NANO and self.nanos % _NANO == 0:
            return _binary_text(self.nanos // _NANO)
        return _decimal_text(self.nanos, -9, exponents=self.format is Format.DECIMAL_EXPONENT)

    def milli_value(self) -> int:
        """Return the amount in thousandths, rounded away from zero. Unlike in Go, it does not overflow."""
        return _divided_away_from_zero(self.nanos, 10**6)


def parse_quantity(text: str) -> Quantity:
    """Return the quantity of a text. Raises QuantityError.

    An amount finer than nano is rounded away from zero. A binary amount is capped at 2^63-1, as in Go.
    """
    if len(text) > _LONGEST_TEXT:
        raise QuantityError(f"quantity is {len(text)} characters long: write at most {_LONGEST_TEXT}")
    shape = _SHAPE.fullmatch(text) if text else None
    if shape is None:
        raise QuantityError(f"{text!r} is not a quantity: write a decimal number and a suffix, such as 1500m, 2 or 4Gi")
    sign, whole, fraction, suffix = shape.group(1), shape.group(2), shape.group(3) or "", shape.group(4)
    base, exponent, form = _interpret_suffix(text, suffix)
    nanos = _nanos(int(whole + fraction or "0"), len(fraction), base, exponent)
    if form is Format.BINARY_SI:
        nanos = min(nanos, INT64_MAX * _NANO)
        if 0 < nanos < _NANO:
            form = Format.DECIMAL_SI
    return Quantity(-nanos if sign == "-" else nanos, form)


def milli_quantity(milli: int) -> str:
    """Return the canonical decimal text of an amount in thousandths."""
    if milli % 1000:
        return f"{milli}m"
    return _whole_text(milli // 1000)


def quantity_text(milli: int, form: Format) -> str:
    """Return the canonical text of an amount in thousandths, in a format: 10485760000 is `10Mi` in BinarySI."""
    return str(Quantity(milli * 10**6, form))


def fits_milli_units(value: float) -> bool:
    """Return whether a float is a number whose thousandths fit into 64 bits.

    Autoscalers misread all other numbers: Go's `MilliValue` is 0 for `10P`, and arbitrary for other such amounts.
    """
    return -_MOST_WITH_MILLI_UNITS <= value <= _MOST_WITH_MILLI_UNITS


def binary_quantity_of(value: float) -> str:
    """Return a float as a canonical quantity in powers of 1024, with thousandths truncated toward zero.

    As in Go, an amount below 1024 or with a fraction is written in decimal form. Raises ValueError for NaN and
    infinities.
    """
    if 1024 <= value < _EXACT_INTEGERS_FROM and value == (whole := int(value)):
        return _binary_text(whole)
    return quantity_text(milli_of(value), Format.BINARY_SI)


def milli_of(value: float) -> int:
    """Return a float as thousandths, truncated toward zero.

    The float counts as the decimal number that it is printed as: 0.29 is 290, although its binary value is a little
    less.
    Raises ValueError for NaN and infinities.
    """
    if not math.isfinite(value):
        raise ValueError(f"{value} has no value in thousandths")
    if value == (whole := int(value)) and abs(value) < _EXACT_INTEGERS_FROM:
        return whole * 1000
    text = repr(value)
    if "e" in text:
        return int(Decimal(text).scaleb(3))
    integer, _, fraction = text.partition(".")
    return int(f"{integer}{fraction:0<3.3}")


def quantity_of(value: float) -> str:
    """Return a float as a canonical decimal quantity with thousandths, truncated toward zero.

    From 9.2e15 up, where int64 milli-units end, and from -1e15 down, the amount is a whole number; it has an exponent
    where the suffix `E` is too small. Raises ValueError for NaN and infinities.
    """
    if -_EXACT_INTEGERS_FROM < value < _EXACT_INTEGERS_FROM:
        whole = int(value)
        if value == whole:
            return str(whole) if whole % 1000 else _whole_text(whole)
        milli = milli_of(value)
        return milli_quantity(milli if milli > _LEAST_READ_BY_GO else -(-milli // 1000 * 1000))
    if not math.isfinite(value):
        raise ValueError(f"{value} cannot be written as a quantity")
    return _whole_text(int(Decimal(repr(value))))


def quantity_cut_in_binary(value: float) -> str:
    """Return a float as prometheus-adapter writes it, which may be a thousandth less than `quantity_of`.

    prometheus-adapter truncates the binary product to thousandths: 1.001 is stored as a little less, so it becomes `1`.
    Beyond int64 milli-units, where the product overflows, and from -1e15 down, the result is that of `quantity_of`.
    """
    if -_EXACT_INTEGERS_FROM < value < _EXACT_INTEGERS_FROM and (milli := int(value * 1000)) > _LEAST_READ_BY_GO:
        return milli_quantity(milli)
    return quantity_of(value)


def _interpret_suffix(text: str, suffix: str) -> tuple[int, int, Format]:
    """Return the base, exponent and format of a suffix."""
    if (exponent := _DECIMAL_SUFFIXES.get(suffix)) is not None:
        return 10, exponent, Format.DECIMAL_SI
    if (exponent := _BINARY_SUFFIXES.get(suffix)) is not None:
        return 2, exponent, Format.BINARY_SI
    if (match := _EXPONENT.fullmatch(suffix)) is None:
        raise QuantityError(
            f"{text!r} has the unknown suffix {suffix!r}: use one of n u m k M G T P E, Ki Mi Gi Ti Pi Ei, e3"
        )
    if (exponent := int(match.group(1))) > _LARGEST_EXPONENT:
        raise QuantityError(f"{text!r} is too large: write an exponent of at most {_LARGEST_EXPONENT}")
    return 10, exponent, Format.DECIMAL_EXPONENT


def _nanos(digits: int, decimals: int, base: int, exponent: int) -> int:
    """Return digits x 10^-decimals x base^exponent in billionths, rounded up."""
    if base == 2:
        return _divided_away_from_zero((digits << exponent) * _NANO, _power_of_ten(decimals))
    shift = exponent - decimals + 9
    if shift >= 0:
        return digits * _power_of_ten(shift)
    # Beyond this many places, only the rounding is left, so the power is not needed.
    return _divided_away_from_zero(digits, _power_of_ten(min(-shift, 2 * _LONGEST_TEXT)))


def _power_of_ten(exponent: int) -> int:
    power: int = 10**exponent
    return power


def _divided_away_from_zero(amount: int, divisor: int) -> int:
    return -(-amount // divisor) if amount >= 0 else amount // divisor


def _whole_text(whole: int) -> str:
    return _decimal_text(whole, 0, exponents=False)


def _decimal_text(mantissa: int, exponent: int, *, exponents: bool) -> str:
    """Return mantissa x 10^exponent (a multiple of 3) with the largest suffix that leaves no fraction."""
    if mantissa == 0:
        return "0"
    while mantissa % 1000 == 0:
        mantissa //= 1000
        exponent += 3
    suffix = None if exponents else _DECIMAL_BY_EXPONENT.get(exponent)
    if suffix is None:
        suffix = f"e{exponent}" if exponent else ""
    return f"{mantissa}{suffix}"


def _binary_text(whole: int) -> str:
    steps = 0
    while whole % 1024 == 0 and steps < len(_BINARY_BY_STEPS) - 1:
        whole //= 1024
        steps += 1
    return f"{whole}{_BINARY_BY_STEPS[steps]}"
