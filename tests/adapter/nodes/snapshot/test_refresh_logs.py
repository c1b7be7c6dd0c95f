from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from adapter.nodes.model.loads import LoadResource, UnmappedSeries
from adapter.nodes.model.samples import SampleGrid, SampleSet
from adapter.nodes.queries.refresh_results import RefreshResult
from adapter.nodes.snapshot import refresh_logs
from adapter.nodes.snapshot.refresh_logs import RefreshReports

if TYPE_CHECKING:
    import pytest

CPU, MEMORY = LoadResource.CPU, LoadResource.MEMORY


def samples_until(end: int) -> SampleSet:
    """Return samples of one node that end then."""
    unknown = np.full(1, np.nan)
    return SampleSet({CPU: SampleGrid(CPU, 15, end, ("a",), np.full((1, 1), 0.5), unknown, unknown, unknown, unknown)})


def test_a_failure_that_differs_only_in_numbers_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    reports = RefreshReports()
    for why in ("no answer within 6 s", "no answer within 1.98 s", "no answer within 5.99 s", "refused", "refused"):
        assert reports.failures(RefreshResult(SampleSet({}), failures={CPU: why})) == {CPU: why}
    assert [message.rpartition(": ")[2] for message in caplog.messages] == ["no answer within 6 s", "refused"]


def test_one_cause_is_logged_once_for_any_number_of_resources(caplog: pytest.LogCaptureFixture) -> None:
    reports = RefreshReports()
    everything = dict.fromkeys(LoadResource, "no connection")
    for failures in ({CPU: "no connection"}, everything, everything):
        assert reports.failures(RefreshResult(SampleSet({}), failures=failures)) == failures
    (record,) = caplog.records
    assert record.getMessage() == "the newest samples of cpu are missing: no connection"
    assert record.__dict__["fields"] == {"resources": "cpu", "cause": "no connection"}


def test_causes_that_differ_only_in_numbers_are_one_cause_for_any_number_of_resources(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """If Prometheus hangs, each query of a refresh has waited for another time."""
    RefreshReports().failures(
        RefreshResult(SampleSet({}), failures={CPU: "no answer in 15 s", MEMORY: "no answer in 7 s"})
    )
    assert caplog.messages == ["the newest samples of cpu, memory are missing: no answer in 15 s"]


def test_the_end_of_a_cause_is_logged_once_when_it_reaches_no_resource_any_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Short refreshes ask for one resource each, so the resources have newer samples one after another."""
    reports = RefreshReports()
    gpu = LoadResource.GPU
    grids = {one: replace(samples_until(900).grids[CPU], resource=one) for one in (CPU, MEMORY, gpu)}
    reports.failures(RefreshResult(SampleSet(grids), failures={CPU: "hangs", MEMORY: "hangs", gpu: "refused"}))
    caplog.clear()
    caplog.set_level(logging.INFO)
    for ended, failures in ((CPU, {gpu: "refused"}), (MEMORY, {}), (gpu, {})):
        grids = grids | {ended: replace(grids[ended], end=grids[ended].end + 15)}
        reports.failures(RefreshResult(SampleSet(grids), failures=failures))
    assert caplog.messages == [
        "the newest samples of cpu, memory are available again",
        "the newest samples of gpu are available again",
    ]


def test_a_resource_that_had_newer_samples_meanwhile_fails_for_a_reason_of_its_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The query for one resource may always be too slow, which must not hide that Prometheus hangs later."""
    reports, grids = RefreshReports(), {}
    for end, failures in (
        (915, {CPU: "hangs"}),
        (930, {CPU: "hangs"}),
        (930, {MEMORY: "hangs"}),
        (930, {CPU: "hangs"}),
    ):
        grids = {MEMORY: replace(samples_until(end).grids[CPU], resource=MEMORY)}
        reports.failures(RefreshResult(SampleSet(grids), failures=failures))
    assert caplog.messages == [
        "the newest samples of cpu are missing: hangs",
        "the newest samples of memory are missing: hangs",
    ]


def test_resources_whose_answers_are_partial_share_a_line_while_their_samples_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reports = RefreshReports()
    ends = {CPU: 900, MEMORY: 900}
    for number in range(6):
        resource = (CPU, MEMORY)[number % 2]
        ends[resource] += 30
        grids = {one: replace(samples_until(end).grids[CPU], resource=one) for one, end in ends.items()}
        reports.failures(RefreshResult(SampleSet(grids), failures={resource: "a store is away"} if number > 1 else {}))
    assert caplog.messages == ["the newest samples of cpu are missing: a store is away"]


def test_resources_with_the_same_cause_share_a_line_and_another_cause_has_its_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reports = RefreshReports()
    gpu = LoadResource.GPU
    reports.failures(RefreshResult(SampleSet({}), failures={CPU: "a", MEMORY: "a", gpu: "b"}))
    reports.failures(RefreshResult(SampleSet({}), failures={CPU: "a", MEMORY: "b", gpu: "b"}))
    assert caplog.messages == [
        "the newest samples of cpu, memory are missing: a",
        "the newest samples of gpu are missing: b",
    ]


def test_causes_that_swap_their_resources_again_and_again_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """Where some of a Prometheus's connections are refused and others hang, each resource meets either in turn."""
    reports = RefreshReports()
    causes = ["no answer in 15 s", "connection refused"]
    for _ in range(6):
        reports.failures(RefreshResult(SampleSet({}), failures=dict(zip((CPU, MEMORY), causes, strict=True))))
        causes.reverse()
    assert caplog.messages == [
        "the newest samples of cpu are missing: no answer in 15 s",
        "the newest samples of memory are missing: connection refused",
    ]


def test_resources_that_are_available_again_at_the_same_time_share_a_line(caplog: pytest.LogCaptureFixture) -> None:
    reports = RefreshReports()
    reports.failures(RefreshResult(samples_until(900), failures={CPU: "refused", MEMORY: "refused"}))
    caplog.clear()
    caplog.set_level(logging.INFO)
    grids = {one: replace(samples_until(915).grids[CPU], resource=one) for one in (CPU, MEMORY)}
    assert reports.failures(RefreshResult(SampleSet(grids))) == {}
    (record,) = caplog.records
    assert record.getMessage() == "the newest samples of cpu, memory are available again"
    assert record.__dict__["fields"] == {"resources": "cpu, memory"}


def test_many_instances_without_a_node_take_one_line_that_counts_them(caplog: pytest.LogCaptureFixture) -> None:
    RefreshReports().log_unmapped([UnmappedSeries(f"i{number}", {}, (CPU,), "Repair it.") for number in range(5)])
    (record,) = caplog.records
    assert record.__dict__["fields"]["instances"] == "i0, i1, i2 and 2 more"


def test_a_failure_ends_with_newer_samples_although_the_clock_was_set_back() -> None:
    reports = RefreshReports()
    assert reports.failures(RefreshResult(samples_until(9000), failures={CPU: "refused"})) == {CPU: "refused"}
    for end in (900, 900):
        assert reports.failures(RefreshResult(samples_until(end))) == {CPU: "refused"}
    assert reports.failures(RefreshResult(samples_until(915))) == {}


def test_instances_that_are_gone_make_room_for_others_in_memory(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where pods come and go, their addresses change all the time."""
    monkeypatch.setattr(refresh_logs, "_MOST_REMEMBERED", 3)
    reports = RefreshReports()
    for number in range(0, 12, 2):
        for _ in range(3):
            reports.log_unmapped([UnmappedSeries(f"i{one}", {}, (CPU,), "Repair it.") for one in (number, number + 1)])
    assert len(caplog.records) == 6


def test_many_jobs_that_do_not_count_take_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    """A tenant can give each of its series a job of its own, and other ones at each refresh."""
    reports = RefreshReports()
    for refresh in range(2):
        refused = [
            UnmappedSeries(f"i{number}", {"job": f"j{refresh}-{number}"}, (CPU,), "Repair it.", "It is not the one.")
            for number in range(9)
        ]
        reports.exporters(RefreshResult(SampleSet({}), unmapped=tuple(refused)))
    assert len(caplog.records) == 8
    assert [record.__dict__["fields"].get("count") for record in caplog.records[:4]] == [None, None, None, 6]
