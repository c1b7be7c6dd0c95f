"""A small run of the benchmark of the recommender in a large cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from benchmarks.recommender_cluster import main
from benchmarks.report import from_json

if TYPE_CHECKING:
    import pytest


def test_every_row_has_the_value_that_the_cluster_demands(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--nodes=40", "--pods=900", "--services=1100", "--seconds=0.5"]
    status = main([*sizes, "-o", "json"])
    found = from_json(capsys.readouterr().out)
    assert status == 0, msgspec.to_builtins(found)
    assert [row["phase"] for row in found.rows] == [
        "nodes, idle",
        "nodes, heartbeats",
        "nodes, pods and services, heartbeats",
        "floor, heartbeats",
    ]
    assert [row.get("replicas") for row in found.rows] == [3.0, 3.0, 6.0, None]
