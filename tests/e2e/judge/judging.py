"""Asks the judge, a Go program that runs kube-scheduler's own filter plugins on a cluster with one pending pod."""

from __future__ import annotations

import json
import select
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

SOURCE: Final = Path(__file__).parent
ANSWER_SECONDS: Final = 60

Objects: TypeAlias = dict[str, Any]
"""A cluster as the judge reads it: lists of objects by key, and `pod`."""


@dataclass(frozen=True, slots=True)
class ClusterVerdict:
    """The verdict of the nodes of a cluster on the pod."""

    refused: frozenset[str] = frozenset()
    """Why no node was checked; empty if nodes were."""
    nodes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """For each node, why it cannot take the pod; empty if it can."""
    message: str = ""
    """The message of the event FailedScheduling; empty if a node can take the pod."""


class JudgeError(RuntimeError):
    """The judge has not answered; the message says why."""


class Judge:
    """The running program, which answers one question at a time."""

    def __init__(self, program: Path) -> None:
        self._process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def ask(self, cluster: Objects) -> ClusterVerdict:
        """Return the verdict; raises JudgeError."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(json.dumps(cluster).encode() + b"\n")
            stdin.flush()
        except BrokenPipeError as e:
            raise JudgeError(self._last_words()) from e
        if not select.select([stdout], [], [], ANSWER_SECONDS)[0]:
            raise JudgeError(f"no answer after {ANSWER_SECONDS} s")
        line = stdout.readline()
        if not line:
            raise JudgeError(self._last_words())
        return _verdict(json.loads(line))

    def _last_words(self) -> str:
        self._process.kill()
        _, stderr = self._process.communicate()
        return stderr.decode(errors="replace")[:2000]


def _verdict(answer: dict[str, Any]) -> ClusterVerdict:
    refused = answer.get("refused") or {}
    return ClusterVerdict(
        frozenset(refused.get("reasons", ())),
        {name: frozenset(one.get("reasons", ())) for name, one in answer["nodes"].items()},
        answer.get("message", ""),
    )
