from __future__ import annotations

import gc
import io
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import pytest

from benchmarks import series_discovery
from benchmarks.adapter_stage import running_adapter
from benchmarks.cluster_of_series import Cluster, Series, listed
from benchmarks.cores import Cores
from benchmarks.prober import ProbePlan, probed
from benchmarks.progress import Progress
from benchmarks.series_discovery import PRODUCT, Settings, idle, main, relisting, started, undisturbed, wait_for_series
from benchmarks.series_stage import ASKED, ASKED_APP, series_stage
from benchmarks.watched_adapter import Watch, seconds_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from benchmarks.series_stage import SeriesStage
    from benchmarks.watched_adapter import Second

SETTINGS = Settings(series=1, seconds=4.0, starts=1, scrape_seconds=1)
SAID = io.StringIO()
QUIET = Progress("test", SAID)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeriesStage]:
    cluster = Cluster.of_series(1)
    with series_stage(tmp_path_factory.mktemp("series"), cluster, Cores.of_this_machine(), 1) as standing:
        wait_for_series(standing, QUIET)
        yield standing


def test_the_cluster_has_the_requested_series() -> None:
    series = [series for target in Cluster.of_series(30_000).targets() for series in target]
    assert len(series) == pytest.approx(30_000, rel=0.02)
    assert len({(each.name, *sorted(each.labels.items())) for each in series}) == len(series)


def test_a_cluster_of_200000_series_has_the_names_of_a_real_one() -> None:
    names = {series.name for target in Cluster.of_series(200_000).targets() for series in target}
    assert 1_500 < len(names) < 2_500


def test_what_the_default_rules_list() -> None:
    labels = dict.fromkeys(("namespace", "pod", "instance", "job"), "x")
    found = listed(
        [
            Series("container_cpu_usage_seconds_total", labels),
            Series("http_requests_total", {"namespace": "x", "service": "x"}),
            Series("http_requests_total", {"namespace": "x", "pod": "x"}),
            Series("up", {"pod": "x"}),
        ]
    )
    assert found == {
        "pods/cpu_usage",
        "namespaces/cpu_usage",
        "pods/http_requests",
        "services/http_requests",
        "namespaces/http_requests",
    }


def test_a_start_lists_everything_and_reports_its_cost(stage: SeriesStage, monkeypatch: pytest.MonkeyPatch) -> None:
    # Whether memory has settled is of interest to the benchmark alone.
    monkeypatch.setattr(series_discovery, "SETTLE_SECONDS", 0.1)
    row = started(stage, QUIET)
    assert row["errors"] == 0
    # The rules have two queries for series between them, and each was asked once.
    assert row["prometheus_series_lookups"] == 2
    numbers = [row[key] for key in ("ready_seconds", "first_list_seconds", "prometheus_seconds", "rss_mib")]
    assert all(isinstance(number, float) and number > 0 for number in numbers)
    assert idle(stage, QUIET)["rss_mib"] != 0


def test_every_phase_is_answered_without_an_error(stage: SeriesStage) -> None:
    rows = {str(row["phase"]): row for row in (*undisturbed(stage, SETTINGS, QUIET), relisting(stage, SETTINGS, QUIET))}
    assert list(rows) == ["quiet", "quiet-prometheus-busy", "relists"]
    for row in rows.values():
        assert (row["errors"], row["value_requests"], row["list_requests"]) == (0, 800, 40), (row, SAID.getvalue())
        assert all(
            isinstance(row[f"{what}_{which}_ms"], float) for what in ("value", "list") for which in ("p99", "max")
        )
        assert isinstance(row["interpreter_held_max_ms"], float)
        assert row["interpreter_held_max_ms"] > 0
    assert rows["quiet"]["prometheus_series_lookups"] == 0
    assert all(rows[phase]["prometheus_series_lookups"] for phase in ("quiet-prometheus-busy", "relists"))


def test_wrong_answers_are_errors_and_not_latencies(stage: SeriesStage, tmp_path: Path) -> None:
    (tmp_path / "list").write_bytes(b"{}")
    with running_adapter(replace(stage.backdrop.standing, folder=tmp_path), "wrong", [*PRODUCT]) as adapter:
        now = time.monotonic()
        plan = ProbePlan(
            endpoint=adapter.endpoint,
            fleet=msgspec.structs.replace(ASKED, pods_per_app=4),
            app=ASKED_APP,
            list_file=str(tmp_path / "list"),
            period_seconds=0.1,
            start_at=now,
            end_at=now + 0.5,
            result_file="",
        )
        values = probed(plan)
        now = time.monotonic()
        lists = probed(msgspec.structs.replace(plan, app=None, start_at=now, end_at=now + 0.5))
    for outcome in (values, lists):
        assert (outcome.requests, outcome.good) == (5, 0)
    assert any("not the list as it must be" in reason for reason in lists.reasons)


def test_the_watch_measures_how_long_the_interpreter_is_held(tmp_path: Path) -> None:
    file = tmp_path / "watch"
    callbacks = list(gc.callbacks)
    watch = Watch(file)
    watch.start()
    text = "x" * 20_000_000
    until = time.monotonic() + 30.0
    try:
        while not _seen(seconds_of(file)):
            assert time.monotonic() < until
            # One call into C that the interpreter cannot leave.
            text.count("xy")
            gc.collect()
    finally:
        watch.stop()
    assert gc.callbacks == callbacks


def _seen(seconds: Sequence[Second]) -> bool:
    """Return whether a second shows a held interpreter, and one a collection; the file may gain seconds meanwhile."""
    held = any(second.held_ms > 5 and second.pause_ms > 5 for second in seconds)
    return held and any(second.collection_ms > 0 for second in seconds)


@pytest.mark.parametrize("arguments", [["--series", "0"], ["--seconds", "x"], ["--starts", "-1"], ["-o", "xml"]])
def test_wrong_usage_is_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
