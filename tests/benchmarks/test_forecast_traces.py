from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from benchmarks.forecast_traces import main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

ELB = "elb_request_count_5min.csv"


def test_says_what_is_missing_and_where_it_is_published(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--traces", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert ELB in said
    assert "https://github.com/numenta/NAB" in said
    assert "https://ita.ee.lbl.gov" in said


def test_each_part_of_a_trace_is_a_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begin = datetime(2026, 11, 1, tzinfo=UTC)
    lines = [f"{begin + timedelta(minutes=5 * number):%Y-%m-%dT%H:%M:%SZ},{100 + number % 7}" for number in range(300)]
    (tmp_path / ELB).write_text("\n".join(["timestamp,value", *lines]), encoding="utf-8")
    assert main(["--traces", str(tmp_path), "--trace", "elb", "--model", "linear", "-o", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["startup_seconds"], row["part"]) for row in rows] == [
        (startup, part) for startup in (300.0, 600.0) for part in ("whole", "first half", "second half")
    ]
    assert {row["auto_uses"] for row in rows} == {"headroom"}
