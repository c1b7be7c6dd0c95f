"""Asks the oracle, a Go program that says how Go's own libraries read texts."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

SOURCE: Final = Path(__file__).parent
ANSWER_SECONDS: Final = 60
"""The limit for a whole batch; ten thousand questions take less than one second."""

Question: TypeAlias = dict[str, Any]
Answer: TypeAlias = Any
"""A JSON value, or `Refused`."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The answer to a text that is not accepted; two such answers are equal whatever their reasons."""

    reason: str = field(compare=False)


class OracleError(RuntimeError):
    """The oracle has not answered; the message says what it was asked."""


@dataclass(frozen=True, slots=True)
class Oracle:
    """The built program."""

    program: Path

    def ask(self, op: str, questions: Sequence[Question]) -> list[Answer]:
        """Return an answer to each question, all from one process; raises OracleError."""
        lines = "".join(f"{json.dumps({'op': op, **question})}\n" for question in questions)
        try:
            done = subprocess.run(
                [self.program], input=lines.encode(), capture_output=True, timeout=ANSWER_SECONDS, check=False
            )
        except subprocess.TimeoutExpired as e:
            unanswered = questions[(e.stdout or b"").count(b"\n") :]
            where = f"at or behind {unanswered[0]}" if unanswered else "it has answered all, but does not end"
            raise OracleError(f"{op}: not done after {ANSWER_SECONDS} s: {where}") from e
        answers = done.stdout.decode().split("\n")[:-1]
        if done.returncode or len(answers) != len(questions):
            raise OracleError(f"{op}: exit status {done.returncode}: {done.stderr.decode(errors='replace')[:2000]}")
        return [_answer(json.loads(line)) for line in answers]


def _answer(line: Answer) -> Answer:
    return Refused(line["error"]) if isinstance(line, dict) and "error" in line else line
