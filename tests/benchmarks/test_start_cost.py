"""A small run of the benchmark of a start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.report import from_json
from benchmarks.start_cost import main
from benchmarks.start_stage import ENTRIES, SERVERS

if TYPE_CHECKING:
    import pytest


def test_each_command_starts_and_takes_processor_time(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["--starts=1", "-o", "json"])
    printed = capsys.readouterr()
    assert status == 0, printed.err + printed.out
    found = from_json(printed.out)
    assert [row["phase"] for row in found.rows] == [*SERVERS, *(f"recommend, {kind}" for kind in ENTRIES)]
    assert all(row["cpu_s"] > 0 for row in found.rows)
