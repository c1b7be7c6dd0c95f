"""Single values of parameters, from their literal text; shared by the ConfigMap and the configuration file.

The texts are those of JSON, read into Go's `float64` and `int` as encoding/json does it: a whole number has neither a
fraction nor an exponent, and what is out of range is an error.
"""

from __future__ import annotations

import math
import re
from typing import Final

_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WHOLE: Final = re.compile(r"-?(?:0|[1-9][0-9]*)")
_INT64: Final = 2**63
_LONGEST_WHOLE: Final = 20
"""Digits of the longest int64 with its sign; Python refuses to convert thousands of digits."""


class ValueTextError(ValueError):
    """A text is not a value of the expected type; the message is the expected type, with an example."""


def ratio_of(text: str) -> float:
    """Return the number that the text spells; raises ValueTextError."""
    value = float(text) if _NUMBER.fullmatch(text) else math.inf
    if math.isinf(value):
        raise ValueTextError("a number, such as 16 or 2.5")
    return value


def count_of(text: str) -> int:
    """Return the whole number that the text spells; raises ValueTextError."""
    value = int(text) if _WHOLE.fullmatch(text) and len(text) <= _LONGEST_WHOLE else _INT64
    if not -_INT64 <= value < _INT64:
        raise ValueTextError("a whole number, such as 16")
    return value
