from __future__ import annotations

import io
import os
import time
from typing import TYPE_CHECKING

import pytest

from benchmarks.adapter_load import Settings, loads, main, measured, wait_for_series
from benchmarks.adapter_stage import backdrop, product
from benchmarks.aggregator_client import AggregatorClient, LoadPlan
from benchmarks.cores import Cores, on
from benchmarks.fleet_of_pods import Fleet
from benchmarks.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.adapter_stage import Backdrop, RunningAdapter
    from benchmarks.tally import Outcome

FLEET = Fleet(apps=20, pods_per_app=3, metrics=2, namespaces=8)
SETTINGS = Settings(FLEET, seconds=5.0, rate=16.0, scrape_seconds=1, connections=4)
"""The measured time spans several refreshes, so that others lie within it if a busy machine makes one late."""
QUIET = Progress("test", io.StringIO())


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backdrop]:
    with backdrop(tmp_path_factory.mktemp("load"), FLEET, Cores.of_this_machine(), scrape_seconds=1) as standing:
        wait_for_series(standing, 1, QUIET)
        yield standing


def asked_for_a_second(adapter: RunningAdapter, fleet: Fleet, folder: Path) -> Outcome:
    """Send some requests from this thread, and judge the answers by `fleet`."""
    now = time.monotonic()
    client = AggregatorClient(
        LoadPlan(
            fleet=fleet,
            workload="pods",
            endpoint=adapter.endpoint,
            rate=30.0,
            start_at=now,
            measure_from=now,
            measure_until=now + 1.0,
            connections=3,
            timeout_seconds=5.0,
            result_file=str(folder / "unused.json"),
        )
    )
    try:
        return client.run()
    finally:
        client.close()


def test_every_row_is_there_with_answers_that_are_right(stage: Backdrop) -> None:
    rows, asked = {}, {}
    for load in loads(SETTINGS):
        before = stage.asked()["/api/v1/query"]
        rows[load.label] = measured(stage, load, SETTINGS, QUIET)
        asked[load.label] = stage.asked()["/api/v1/query"] - before
    assert list(rows) == ["pods", "external", "resource", "reference-query-per-request"]
    for row in rows.values():
        assert (row["requests"], row["errors"], row["good_ratio"]) == (80, 0, 1.0), row
        assert all(isinstance(row[key], float) for key in ("p50_ms", "p99_ms", "max_ms", "cpu_seconds", "rss_mib"))
    # Six namespaces or more ask, so one query for each metric and refresh; at most one refresh a second.
    for label, metrics in (("pods", 2), ("external", 1), ("resource", 2)):
        most = metrics * (1 + rows[label]["counted_seconds"])  # type: ignore[operator]  # a number
        assert 0 < rows[label]["prometheus_queries"] <= most  # type: ignore[operator]  # likewise
    # On a busy machine some queries come after the measured time.
    assert asked["reference-query-per-request"] >= 80


def test_wrong_answers_are_errors_and_not_latencies(stage: Backdrop, tmp_path: Path) -> None:
    believed = Fleet(apps=20, pods_per_app=2, metrics=2, namespaces=8)
    with product(stage) as adapter:
        outcome = asked_for_a_second(adapter, believed, tmp_path)
    assert (outcome.requests, outcome.good, outcome.errors) == (30, 0, 30)
    assert outcome.p50_ms is None
    assert any("2 pods were asked for" in reason for reason in outcome.reasons)


def test_a_server_that_is_gone_is_an_error_for_each_request(stage: Backdrop, tmp_path: Path) -> None:
    with product(stage) as adapter:
        now = time.monotonic()
        plan = LoadPlan(
            fleet=FLEET,
            workload="external",
            endpoint=adapter.endpoint,
            rate=30.0,
            start_at=now,
            measure_from=now,
            measure_until=now + 1.0,
            connections=3,
            result_file=str(tmp_path / "unused.json"),
        )
        client = AggregatorClient(plan)
        adapter.process.kill()
        adapter.process.wait(5.0)
    outcome = client.run()
    client.close()
    assert (outcome.requests, outcome.errors) == (30, 30)
    assert all("connection" in reason for reason in outcome.reasons)


def test_processors_are_given_back() -> None:
    before, cores = os.sched_getaffinity(0), Cores.of_this_machine()
    with on(cores.measured), on(cores.others):
        pass
    assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize("arguments", [["--hpas", "0"], ["--seconds", "x"], ["--rate", "-1"], ["-o", "xml"]])
def test_wrong_usage_is_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2


def test_each_app_is_requested_once_in_a_round() -> None:
    for apps in (1, 2, 7, 50, 1000, 10_000):
        plan = LoadPlan(
            fleet=Fleet(apps=apps),
            workload="pods",
            endpoint={},  # type: ignore[arg-type]  # not looked at
            rate=1.0,
            start_at=0.0,
            measure_from=0.0,
            measure_until=1.0,
            result_file="",
        )
        assert {plan.app(number) for number in range(apps)} == set(range(apps))
