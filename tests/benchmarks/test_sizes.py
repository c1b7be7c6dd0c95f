from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from benchmarks.recorded_traces import RECORDINGS
from benchmarks.recorded_usage import GPU_PODS, recorded_usage
from benchmarks.sized_workloads import STEPS_PER_DAY
from benchmarks.sizes import measured
from benchmarks.sizes_backtest import main

if TYPE_CHECKING:
    from pathlib import Path


def test_each_workload_of_the_stand_in_gets_a_size() -> None:
    found = measured(40)
    assert (found["workloads"], found["errors"]) == (40, 0)


def test_percentiles_of_their_own_overrun_less_than_the_others_at_equal_reservation(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--made", "--containers", "120", "--days", "15", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["rows"]
    own = {row["resource"]: row["overrun_percent"] for row in found if row["policy"].startswith("sizes")}
    assert set(own) == {"cpu", "memory"}
    for row in found:
        assert own[row["resource"]] <= row["overrun_percent_reserving_as_ours"]


def test_missing_traces_are_named_and_nothing_is_evaluated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--containers", "6", "--days", "15", "--traces", str(tmp_path)]) == 2
    found = capsys.readouterr()
    assert "openb_pod_list_default.csv cannot be read" in found.err
    assert not found.out


def test_recorded_load_becomes_usage_of_containers_as_large_as_recorded_pods(tmp_path: Path) -> None:
    (tmp_path / "gpu").mkdir()
    (tmp_path / GPU_PODS).write_text("name,cpu_milli,memory_mib\na,4000,1024\nb,4000,1024\n")
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    for each in RECORDINGS:
        values = [100 + 50 * math.sin(2 * math.pi * half_hour / 48) for half_hour in range(48 * 16)]
        rows = [f"{begin + timedelta(minutes=30 * number):%Y-%m-%dT%H:%M:%SZ},{v}" for number, v in enumerate(values)]
        (tmp_path / each.file).write_text("\n".join(["timestamp,value", *rows]))
    found = recorded_usage(tmp_path, 4, 15, 1)
    assert found.cores.shape == found.memory.shape == (4, 15 * STEPS_PER_DAY)
    # 0.3 of the request, as the mean, and twice as much at the height of a day as in its depth.
    assert found.cores.mean(axis=1) == pytest.approx([1.2] * 4, rel=0.05)
    days = found.cores.reshape(4, 15, STEPS_PER_DAY).mean(axis=1)
    assert (days.max(axis=1) > 2 * days.min(axis=1)).all()
    assert found.memory.mean(axis=1) == pytest.approx([512 * 2**20] * 4, rel=0.05)
