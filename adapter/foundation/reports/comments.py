"""Texts as comments in YAML files that a program writes for users."""

from __future__ import annotations

import textwrap
from typing import Final

from adapter.foundation.reports.terminal_escaping import printable

_WIDTH: Final = 110


def comment(text: str, indent: str = "") -> list[str]:
    """Return a text as comment lines; none of its characters can end the comment or control a terminal."""
    width = _WIDTH - len(indent)
    lines = textwrap.wrap(printable(text), width, break_long_words=False, break_on_hyphens=False)
    return [f"{indent}# {line}" for line in lines]
