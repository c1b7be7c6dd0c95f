"""Values of YAML scalars as Kubernetes reads them: by the rules of YAML 1.1, restricted to what JSON can express.

Kubernetes converts YAML to JSON before it decodes an object. So `.inf` and `.nan` stay text, as do numbers in base 60
(`1:30`), which its YAML library does not know; a field that needs a number rejects text. An integer that does not fit
into 64 bits becomes a float.
"""

from __future__ import annotations

import math
from typing import TypeAlias

Scalar: TypeAlias = "str | bool | int | float | None"

_TAG = "tag:yaml.org,2002:"
_TRUE = frozenset({"true", "yes", "on", "y"})
_FALSE = frozenset({"false", "no", "off", "n"})
_BASES = {"0b": 2, "0x": 16}
_LONGEST_NUMBER = 400
"""The most characters of a number; the largest float has 309 digits."""
_SMALLEST, _LARGEST = -(1 << 63), (1 << 64) - 1


def scalar_value(text: str, tag: str, *, explicit: bool) -> Scalar:
    """Return the value of a scalar. Its tag is either stated in the document (`explicit`) or implied by its plain form.

    Raises ValueError if the text does not have the form of an explicit tag.
    """
    kind = tag.removeprefix(_TAG)
    if kind == "null":
        return None
    if kind == "bool":
        return _bool(text)
    if kind not in {"int", "float"}:
        return text
    try:
        value = _integer(text) if kind == "int" else _float(text)
    except (ValueError, OverflowError):
        value = math.nan
    if math.isfinite(value):
        return value
    if explicit:
        raise ValueError(f"{text[:64]!r} is not a number that JSON can express")
    return text


def _bool(text: str) -> bool:
    word = text.lower()
    if word not in _TRUE | _FALSE:
        raise ValueError(f"{text[:64]!r} is neither true nor false")
    return word in _TRUE


def _integer(text: str) -> int | float:
    """Return an integer; raises ValueError, and OverflowError if it does not even fit into a float."""
    if len(text) > _LONGEST_NUMBER:
        raise ValueError("too long")
    digits = text.replace("_", "")
    sign = -1 if digits.startswith("-") else 1
    digits = digits.lstrip("+-")
    if base := _BASES.get(digits[:2].lower()):
        value = int(digits[2:], base)
    else:
        value = int(digits, 8 if digits.startswith("0") and digits != "0" else 10)
    value *= sign
    return value if _SMALLEST <= value <= _LARGEST else float(value)


def _float(text: str) -> float:
    """Return a float, which may be infinite; raises ValueError."""
    if len(text) > _LONGEST_NUMBER:
        raise ValueError("too long")
    return float(text.replace("_", ""))
