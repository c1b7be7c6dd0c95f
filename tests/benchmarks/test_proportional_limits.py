"""A small run of the benchmark of the drop-in for cluster-proportional-autoscaler."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from benchmarks.proportional_limits import main
from benchmarks.report import from_json

if TYPE_CHECKING:
    import pytest


def test_every_row_has_the_value_that_the_nodes_demand(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["--nodes=40", "--seconds=0.2", "--no-limits", "-o", "json"])
    found = from_json(capsys.readouterr().out)
    assert status == 0, msgspec.to_builtins(found)
    assert [(row["phase"], row["replicas"]) for row in found.rows] == [
        ("idle", 3.0),
        ("heartbeats", 3.0),
        ("page", 3.0),
    ]
