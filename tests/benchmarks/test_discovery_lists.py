from __future__ import annotations

import io
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from benchmarks.cores import Cores
from benchmarks.discovery_client import DiscoveryPlan, StreamClient
from benchmarks.discovery_lists import Settings, adapter_before, main, measured, standing, streams, wait_for_list
from benchmarks.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.adapter_stage import Backdrop, RunningAdapter
    from benchmarks.discovery_client import Found

SETTINGS = Settings(metrics=2000, seconds=2.0, hpa_rate=20.0, every_seconds=0.25, relist_seconds=1, scrape_seconds=1)
QUIET = Progress("test", io.StringIO())


@pytest.fixture(scope="module", name="stage")
def _stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backdrop]:
    with standing(tmp_path_factory.mktemp("lists"), SETTINGS, Cores.of_this_machine()) as stage:
        yield stage


@pytest.fixture(scope="module", name="adapter")
def _adapter(stage: Backdrop) -> Iterator[RunningAdapter]:
    variable = "TIDEWATCH_FLAG_METRICS_RELIST_INTERVAL"
    with adapter_before(stage, SETTINGS) as adapter:
        wait_for_list(adapter, SETTINGS, QUIET)
        yield adapter
    assert variable not in os.environ


def asked_once(adapter: RunningAdapter, settings: Settings, stream: int) -> Found:
    """Return what one round of a stream finds."""
    now = time.monotonic()
    client = StreamClient(
        DiscoveryPlan(
            endpoint=adapter.endpoint,
            streams=[],
            start_at=now,
            measure_from=now,
            measure_until=now + 0.2,
            result_file="",
        ),
        streams(settings)[stream],
    )
    for thread in (threads := client.threads()):
        thread.start()
    for thread in threads:
        thread.join()
    return client.found()


def test_every_row_is_there_with_answers_that_are_right(stage: Backdrop, adapter: RunningAdapter) -> None:
    rows = {str(row["load"]): row for row in measured(stage, adapter, SETTINGS, QUIET)}
    assert {name: row["requests"] for name, row in rows.items()} == {
        "list-plain": 8,
        "list-gzip-5-at-once": 40,
        "groups": 8,
        "hpas": 40,
    }
    for row in rows.values():
        assert row["errors"] == 0, row
        assert all(isinstance(row[key], float) for key in ("p50_ms", "p99_ms", "max_ms", "cpu_seconds", "rss_mib"))
    plain, compressed = rows["list-plain"], rows["list-gzip-5-at-once"]
    assert 10 * compressed["bytes"] < plain["bytes"]  # type: ignore[operator]  # numbers
    assert plain["metrics"] >= 2000  # type: ignore[operator]  # likewise


@pytest.mark.parametrize("stream", [0, 1])
def test_a_list_that_lacks_a_metric_is_an_error(adapter: RunningAdapter, stream: int) -> None:
    found = asked_once(adapter, replace(SETTINGS, metrics=1_000_000), stream)
    assert found.outcome.good == 0
    assert found.outcome.errors >= 1
    assert all("APIResourceList of " in reason for reason in found.outcome.reasons)


@pytest.mark.parametrize(
    "arguments", [["--metrics", "1"], ["--seconds", "0"], ["--every", "-1"], ["--relist-seconds", "0"], ["-o", "xml"]]
)
def test_wrong_usage_is_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
