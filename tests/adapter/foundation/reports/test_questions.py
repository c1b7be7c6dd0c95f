"""Questions are asked at a real terminal, and never without one."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.reports.questions import ask_on_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Yield the other end of a terminal that serves as standard input and standard error."""
    ours, theirs = os.openpty()
    with (
        os.fdopen(os.dup(theirs), "r", encoding="utf-8") as source,
        os.fdopen(theirs, "w", encoding="utf-8") as sink,
        monkeypatch.context() as patched,
    ):
        patched.setattr(sys, "stdin", source)
        patched.setattr(sys, "stderr", sink)
        yield ours
    os.close(ours)


def no_number(text: str) -> str:
    return "" if text.isdigit() else "write a number"


@pytest.mark.parametrize(
    ("typed", "answer"),
    [("7\n", "7"), ("\n", ""), ("seven\n7\n", "7"), ("a\nb\nc\n7\n", "")],
    ids=["an answer", "left open", "corrected", "given up"],
)
def test_a_question_is_repeated_until_the_answer_is_usable(
    monkeypatch: pytest.MonkeyPatch, typed: str, answer: str
) -> None:
    with terminal(monkeypatch) as typist:
        os.write(typist, typed.encode())
        found = ask_on_terminal("How many?", no_number)

    assert found == answer


def test_without_a_terminal_no_question_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.close(write)
    with os.fdopen(read, "r", encoding="utf-8") as source:
        monkeypatch.setattr(sys, "stdin", source)

        assert ask_on_terminal("How many?", no_number) == ""
