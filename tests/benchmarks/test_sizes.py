from __future__ import annotations

import json
from typing import TYPE_CHECKING

from benchmarks.sizes import main, measured

if TYPE_CHECKING:
    import pytest


def test_each_workload_of_the_stand_in_gets_a_size() -> None:
    found = measured(40)
    assert (found["workloads"], found["errors"]) == (40, 0)


def test_percentiles_of_their_own_overrun_less_than_the_others_at_equal_reservation(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--backtest", "--containers", "120", "--days", "9", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["rows"]
    own = {row["resource"]: row["overrun_percent"] for row in found if row["policy"].startswith("sizes")}
    assert set(own) == {"cpu", "memory"}
    for row in found:
        assert own[row["resource"]] <= row["overrun_percent_reserving_as_ours"]
