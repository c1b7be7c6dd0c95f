"""Small runs of the benchmarks of `tidewatch-adapter nodes`: every answer is right, and each row is there."""

from __future__ import annotations

import pytest

from benchmarks import extender, node_watcher
from benchmarks.nodes_stage import START_SECONDS
from benchmarks.report import from_json

pytestmark = pytest.mark.timeout(3 * START_SECONDS)
"""Five processes start one after another. Each has a limit that names it and shows its log; the common watchdog, which
is as long as one of these limits, would end the test before them and say nothing."""


def test_every_answer_about_nodes_is_right(capsys: pytest.CaptureFixture[str]) -> None:
    status = node_watcher.main(["--nodes=40", "--requests=10", "--seconds=0.1", "--row-seconds=0.1", "-o", "json"])
    printed = capsys.readouterr()
    assert status == 0, printed.err + printed.out
    found = from_json(printed.out)
    loads = [str(row["load"]) for row in found.rows]
    assert [load for load in loads if not load.startswith("floor")] == [
        "start without a file",
        "/watcher",
        "/watcher, gzip",
        "/watcher?host=",
        "/watcher, not modified",
        "/metrics",
        "/metrics, gzip",
        "refreshes every 30 s",
        "restart after kill -9, from the file",
        "state file",
        "one refresh of 40 nodes with 4 CPUs, real Prometheus",
    ]
    assert len([load for load in loads if load.startswith("floor")]) == 4


def test_every_score_is_right_and_the_middle_one_before_there_are_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    status = extender.main(["--names=40", "--requests=20", "--row-seconds=0.1", "-o", "json"])
    printed = capsys.readouterr()
    assert status == 0, printed.err + printed.out
    found = from_json(printed.out)
    restart = next(row for row in found.rows if str(row["load"]).startswith("restart"))
    assert restart["seconds_to_metrics"] is not None
    assert {"prioritize by two policies, 40 names", "filter, 40 names"} <= {str(row["load"]) for row in found.rows}
