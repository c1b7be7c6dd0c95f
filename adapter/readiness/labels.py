"""Parses labels in braces, as in the text format of Prometheus: `{listener="public"}`."""

from __future__ import annotations

import re
from dataclasses import dataclass

_BLANKS = re.compile(r"[ \t]*")
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_OPERATOR = re.compile(r"=~|!~|!=|=")
_VALUE = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", '"': '"', "\\": "\\"}


@dataclass(frozen=True, slots=True)
class LabelPair:
    """One pair in braces: a label of a series, or a matcher of a selector."""

    name: str
    operator: str
    value: str


def parse_braces(text: str, start: int) -> tuple[tuple[LabelPair, ...], int]:
    """Return the pairs in the braces that open at `start`, and the position after the braces. Raises ValueError."""
    pairs: list[LabelPair] = []
    position = _after_blanks(text, start + 1)
    while not text.startswith("}", position):
        pair, position = _pair(text, position)
        pairs.append(pair)
        position = _after_blanks(text, position)
        if text.startswith(",", position):
            position = _after_blanks(text, position + 1)
        elif not text.startswith("}", position):
            raise ValueError(f"a comma or a closing brace is missing at character {position + 1}")
    return tuple(pairs), position + 1


def _pair(text: str, position: int) -> tuple[LabelPair, int]:
    name = _NAME.match(text, position)
    if name is None:
        raise ValueError(f"the name of a label is missing at character {position + 1}")
    operator = _OPERATOR.match(text, _after_blanks(text, name.end()))
    if operator is None:
        raise ValueError(f"the label {name[0]} has no value")
    value = _VALUE.match(text, _after_blanks(text, operator.end()))
    if value is None:
        raise ValueError(f"the value of the label {name[0]} is not a string in double quotes")
    plain = _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[0]), value[1])
    return LabelPair(name[0], operator[0], plain), value.end()


def _after_blanks(text: str, position: int) -> int:
    blanks = _BLANKS.match(text, position)
    return blanks.end() if blanks else position
