"""Questions to the user at a terminal; without a terminal, none is asked."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeAlias

_MOST_ATTEMPTS = 3


Ask: TypeAlias = Callable[[str, Callable[[str], str]], str]
"""Asks a question until its check finds no problem with the answer; returns an empty text if there is no answer."""


def ask_on_terminal(question: str, problem_of: Callable[[str], str]) -> str:
    """Return the answer; empty without a terminal, after an empty line, or after several unusable answers."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return ""
    for _ in range(_MOST_ATTEMPTS):
        # Not by `input`, which writes to standard output where that is redirected.
        sys.stderr.write(f"{question} [leave open] ")
        sys.stderr.flush()
        answer = sys.stdin.readline().strip()
        problem = problem_of(answer) if answer else ""
        if not problem:
            return answer
        sys.stderr.write(f"{problem}\n")
    return ""
