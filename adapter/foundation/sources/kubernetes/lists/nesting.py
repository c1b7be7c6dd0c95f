"""Cuts JSON that is nested more deeply than a decoder can follow.

The API server accepts 10,000 levels where a schema leaves the form open, but msgspec follows only a thousand. Whoever
may write one object must not be able to make a whole list, or a watch, unreadable.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import msgspec

DEEPEST: Final = 200
"""Levels that are kept; from anywhere in the program, a decoder can follow more levels than this."""
TOO_DEEP: Final = "nested too deeply"
_CUT: Final = rb'"\u0000' + TOO_DEEP.encode() + b'"'
"""Stands for what was cut. If somebody writes this text into an object, only that object is left out."""
_STRUCTURE: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
"""A string, a bracket or a brace. A string that does not end reaches to the end of the content."""


def shallow(content: bytes) -> bytes:
    """Return the JSON with a text in place of each array and object that is nested deeper than `DEEPEST` levels.

    Invalid JSON remains invalid.

    """
    pieces: list[bytes] = []
    depth = at = 0
    for found in _STRUCTURE.finditer(content):
        token = found[0]
        if token in b"[{":
            depth += 1
            if depth == DEEPEST + 1:
                pieces += content[at : found.start()], _CUT
                at = len(content)
        elif token in b"]}":
            if depth == DEEPEST + 1:
                at = found.end()
            depth -= 1
    return b"".join((*pieces, content[at:]))


def is_cut(content: msgspec.Raw) -> bool:
    """Return whether a part of this JSON was cut."""
    return _CUT in bytes(content)
