"""A small run of the benchmark of starts on a busy machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from benchmarks.report import from_json
from benchmarks.start_stage import SERVERS
from benchmarks.starts import main, signals_of

if TYPE_CHECKING:
    from collections.abc import Sequence


def test_each_server_starts_and_no_worker_dies(capsys: pytest.CaptureFixture[str]) -> None:
    # The last two are started with another configuration alone, which the benchmark of a start's cost does too.
    servers = [*SERVERS][:3]
    status = main([f"--starts={len(servers)}", "--load=1", "-o", "json"])
    found = from_json(capsys.readouterr().out)
    assert status == 0, msgspec.to_builtins(found)
    assert [(row["server"], row["starts"], row["workers_died"]) for row in found.rows] == [
        *((server, 1, 0) for server in servers),
        ("all", len(servers), 0),
    ]


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("", []),
        ('{"level":"error","message":"Worker (pid:7) was sent SIGSEGV!"}\n{"message":"ready"}', ["SIGSEGV"]),
        (
            "E Worker (pid:7) was sent SIGKILL! Perhaps out of memory?\nE Worker (pid:8) was sent SIGABRT!",
            ["SIGKILL", "SIGABRT"],
        ),
    ],
)
def test_each_worker_that_a_signal_ended_is_counted(log: str, expected: Sequence[str]) -> None:
    assert list(signals_of(log)) == expected
