from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.nodes.board.refresh_logs import RefreshReports
from adapter.nodes.model.loads import LoadResource, UnmappedSeries
from adapter.nodes.model.samples import SampleSet
from adapter.nodes.queries.refresh_results import RefreshResult

if TYPE_CHECKING:
    import pytest

CPU = LoadResource.CPU


def test_a_failure_whose_numbers_alone_change_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    reports = RefreshReports()
    for why in ("no answer within 6 s", "no answer within 1.98 s", "no answer within 5.99 s", "refused", "refused"):
        assert reports.failures(RefreshResult(SampleSet({}), failures={CPU: why})) == {CPU: why}
    assert [message.rpartition(": ")[2] for message in caplog.messages] == ["no answer within 6 s", "refused"]


def test_many_instances_without_a_node_take_one_line_that_counts_them(caplog: pytest.LogCaptureFixture) -> None:
    RefreshReports().unmapped([UnmappedSeries(f"i{number}", {}, (CPU,), "Repair it.") for number in range(5)])
    (record,) = caplog.records
    assert record.__dict__["fields"]["instances"] == "i0, i1, i2 and 2 more"
