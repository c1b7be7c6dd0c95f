from __future__ import annotations

import logging
import os
import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from adapter.foundation.time.clock import Clock
from recommender.decisions.history_point import HistoryPoint, LoadPoint
from recommender.decisions.loads.prediction import PredictedLoad, Prediction
from recommender.decisions.record import Record, Status, TargetAction, TargetOutcome, TargetReference
from recommender.running.history.history_cache import KEPT_SECONDS, MIGRATIONS, HistoryCache
from tests.support.waiting import until

RECORD = Record(
    name="web",
    type="proportional",
    time=1.0,
    status=Status.OK,
    message="",
    replicas=5,
    binding="linear/nodes",
    targets=(TargetOutcome(TargetReference("apps/v1", "Deployment", "shop", "web"), 3, TargetAction.SCALE),),
)
START = 1_000_000.0


def predicting(load: float, predicted: float | None, at: float | None, **changes: object) -> Record:
    quantiles = {} if predicted is None else {"0.5": load + 1.0, "0.95": predicted}
    prediction = Prediction(PredictedLoad(load, predicted, at, quantiles), "linear", "")
    return replace(RECORD, type="predictive", details=prediction, **changes)  # type: ignore[arg-type]


class Harness:
    def __init__(self, folder: Path) -> None:
        self.now = 0.0
        self.path = folder / "state" / "history.sqlite"
        self.failures = 0
        self.cache = self.started()

    def started(self) -> HistoryCache:
        return HistoryCache(self.path, self._count_failure, clock=Clock(lambda: self.now, lambda: START + self.now))

    def _count_failure(self) -> None:
        self.failures += 1

    def add(self, seconds: float, *records: Record) -> None:
        self.now = seconds
        self.cache.add(START + seconds, records)
        self.cache.flush()

    def read(self, name: str = "web") -> tuple[HistoryPoint, ...]:
        return self.cache.read(name, 0.0)


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


def test_the_history_outlives_the_process(harness: Harness) -> None:
    harness.add(0, RECORD, replace(RECORD, name="dns", replicas=None, status=Status.ERROR, binding=None, targets=()))
    harness.add(10, replace(RECORD, replicas=6))
    harness.cache = harness.started()
    assert harness.read() == (
        HistoryPoint(START, 5, "ok", "linear/nodes", 3),
        HistoryPoint(START + 10, 6, "ok", "linear/nodes", 3),
    )
    assert harness.read("dns") == (HistoryPoint(START, None, "error", None, None),)
    assert harness.cache.read("web", START + 5) == harness.read()[1:]
    assert harness.read("none") == ()
    assert harness.failures == 0


def test_an_unchanged_value_is_recorded_once_a_minute(harness: Harness) -> None:
    for second in range(0, 300, 10):
        harness.add(second, replace(RECORD, time=float(second)))
    assert [point.time - START for point in harness.read()] == [0, 60, 120, 180, 240]


def test_a_size_too_large_for_its_column_is_left_out_and_other_points_are_kept(harness: Harness) -> None:
    huge = replace(RECORD, name="dns", targets=(replace(RECORD.targets[0], current_replicas=10**20),))
    harness.add(0, huge, RECORD)
    assert harness.read("dns") == (HistoryPoint(START, 5, "ok", "linear/nodes", None),)
    assert harness.read() == (HistoryPoint(START, 5, "ok", "linear/nodes", 3),)


def test_a_recommendation_that_returns_is_recorded_at_once(harness: Harness) -> None:
    other = replace(RECORD, name="dns")
    harness.add(0, RECORD, other)
    harness.add(10, other)
    harness.add(20, RECORD, other)
    assert [point.time - START for point in harness.read()] == [0, 20]
    assert [point.time - START for point in harness.read("dns")] == [0]


def test_the_load_is_kept_with_its_forecast_and_the_time_of_the_forecast(harness: Harness) -> None:
    harness.add(0, predicting(100.0, 130.0, START + 120))
    harness.add(60, predicting(105.0, None, None))
    harness.cache = harness.started()
    assert [point.load for point in harness.read()] == [
        LoadPoint(100.0, 101.0, 130.0, START + 120),
        LoadPoint(105.0, None, None, None),
    ]


def test_a_change_of_the_load_alone_is_recorded_once_a_minute(harness: Harness) -> None:
    for second in range(0, 150, 10):
        harness.add(second, predicting(float(second), second + 5.0, START + second + 120))
    assert [point.load.observed for point in harness.read() if point.load] == [0, 60, 120]


def test_the_sums_of_load_and_forecast_are_kept_if_there_are_many_targets(harness: Harness) -> None:
    each = [TargetReference("apps/v1", "Deployment", "shop", name) for name in "abc"]
    found = [predicting(10.0, 13.0, START + 120, each=target) for target in each]
    harness.add(0, *found, replace(RECORD, each=each[0], details=None))
    harness.add(60, *found[:2], predicting(10.0, None, None, each=each[2]))
    assert [point.load for point in harness.read()] == [
        LoadPoint(30.0, 33.0, 39.0, START + 120),
        LoadPoint(30.0, None, None, None),
    ]


def test_points_older_than_a_day_and_points_from_a_wrong_clock_are_deleted(harness: Harness) -> None:
    harness.add(0, RECORD)
    harness.cache.add(START + 10 * KEPT_SECONDS, [replace(RECORD, replicas=7)])
    harness.add(KEPT_SECONDS + 1.0, RECORD)
    assert [point.time - START for point in harness.read()] == [KEPT_SECONDS + 1.0]


def test_there_is_no_history_before_the_first_decision(harness: Harness) -> None:
    assert harness.read() == ()
    assert harness.failures == 0


@pytest.mark.parametrize("content", [b"", b"no database at all, and longer than its header would be" * 50])
def test_a_file_that_is_not_a_database_is_moved_aside(
    content: bytes, harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.path.parent.mkdir()
    harness.path.write_bytes(content)
    harness.add(0, RECORD)
    harness.add(1, RECORD)
    assert len(harness.read()) == 1
    aside = harness.path.with_name("history.sqlite.broken")
    assert aside.exists() is bool(content), "SQLite takes an empty file for an empty database"
    assert ("replaced by an empty one" in caplog.text) is bool(content)


def test_a_database_with_damaged_pages_is_moved_aside(harness: Harness) -> None:
    for second in range(500):
        harness.cache.add(START + second, [replace(RECORD, replicas=second)])
    harness.cache.flush()
    harness.cache._close()
    content = bytearray(harness.path.read_bytes())
    content[4096:] = b"\x07" * (len(content) - 4096)
    harness.path.write_bytes(content)
    harness.cache = harness.started()
    harness.add(500, RECORD)
    harness.add(501, RECORD)
    assert len(harness.read()) == 1
    assert harness.path.with_name("history.sqlite.broken").read_bytes() == bytes(content)
    assert harness.failures >= 1


@pytest.mark.parametrize("version", [1, 2], ids=["without an index", "without loads"])
def test_an_older_file_is_migrated(version: int, harness: Harness) -> None:
    harness.path.parent.mkdir()
    with closing(sqlite3.connect(harness.path)) as connection:
        for migration in MIGRATIONS[:version]:
            connection.execute(migration)
        connection.execute("INSERT INTO points VALUES ('web', 999999.0, 4, 'ok', NULL, 4)")
        connection.execute(f"PRAGMA user_version = {version}")
        connection.commit()
    harness.add(0, predicting(1.0, 3.0, START + 60))
    assert [(point.replicas, point.load) for point in harness.read()] == [
        (4, None),
        (5, LoadPoint(1.0, 2.0, 3.0, START + 60)),
    ]
    with closing(sqlite3.connect(harness.path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)


def test_a_file_of_a_newer_version_is_moved_aside(harness: Harness, caplog: pytest.LogCaptureFixture) -> None:
    harness.path.parent.mkdir()
    with closing(sqlite3.connect(harness.path)) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    harness.add(0, RECORD)
    harness.add(1, RECORD)
    assert len(harness.read()) == 1
    assert "replaced by an empty one" in caplog.text


def test_a_full_disk_is_logged_once_and_writing_resumes_later(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    harness.add(0, RECORD)
    connection = harness.cache._connection
    assert connection is not None
    connection.execute("PRAGMA max_page_count = 1")
    for second in range(1, 400):
        harness.cache.add(START + second, [replace(RECORD, replicas=second, binding="x" * 100)])
    harness.cache.flush()
    assert harness.failures == 1
    assert caplog.text.count("database or disk is full") == 1
    harness.cache.flush()
    assert harness.failures == 1, "the next try is later"
    harness.add(500, RECORD)
    assert len(harness.read()) == 401
    assert caplog.records[-1].getMessage() == "the history is written again"


@pytest.mark.parametrize("with_folder", [False, True])
def test_a_file_that_somebody_deletes_is_made_anew(
    harness: Harness, caplog: pytest.LogCaptureFixture, *, with_folder: bool
) -> None:
    harness.add(0, RECORD)
    for file in list(harness.path.parent.iterdir()):
        file.unlink()
    if with_folder:
        harness.path.parent.rmdir()
    for seconds in (100, 200):
        harness.add(seconds, RECORD)
    assert [point.time for point in harness.read()] == [START + 100, START + 200]
    harness.cache = harness.started()
    assert len(harness.read()) == 2
    assert not caplog.messages


def test_files_that_somebody_truncates_do_not_end_the_process(harness: Harness) -> None:
    harness.add(0, RECORD)
    assert str(harness.path) not in Path("/proc/self/maps").read_text(), "a mapped file that is truncated kills"
    for file in harness.path.parent.iterdir():
        os.truncate(file, 0)
    for seconds in (100, 200):
        harness.add(seconds, RECORD)
    assert [point.time for point in harness.read()] == [START + 100, START + 200]


def test_a_file_that_an_earlier_version_left_with_a_write_ahead_log_is_used(harness: Harness) -> None:
    harness.add(0, RECORD)
    harness.cache._close()
    with closing(sqlite3.connect(harness.path)) as earlier:
        earlier.execute("PRAGMA journal_mode = WAL")
        earlier.execute("UPDATE points SET replicas = 4")
        earlier.commit()
        left = {file: file.read_bytes() for file in harness.path.parent.iterdir()}
    for file, content in left.items():
        file.write_bytes(content)
    harness.cache = harness.started()
    harness.add(100, RECORD)
    assert [point.replicas for point in harness.read()] == [4, 5]
    assert list(harness.path.parent.iterdir()) == [harness.path]


def test_an_unwritable_folder_counts_as_one_failure_and_raises_no_error(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the folder should be")
    harness = Harness(tmp_path)
    harness.add(0, RECORD)
    assert harness.read() == ()
    assert harness.failures == 1


def test_a_history_that_cannot_be_read_is_empty(harness: Harness) -> None:
    harness.path.parent.mkdir()
    harness.path.write_bytes(b"no database" * 100)
    assert harness.read() == ()
    assert harness.failures == 1


def test_the_writing_thread_writes_everything_before_it_ends(harness: Harness) -> None:
    stop = threading.Event()
    thread = threading.Thread(target=harness.cache.run, args=(stop,))
    thread.start()
    harness.cache.add(START, [RECORD])
    until(harness.read)
    harness.cache.add(START + 1, [replace(RECORD, replicas=9)])
    stop.set()
    thread.join(10.0)
    assert [point.replicas for point in harness.read()] == [5, 9]


def test_a_folder_that_cannot_be_read_has_no_points(tmp_path: Path) -> None:
    failures: list[None] = []
    cache = HistoryCache(tmp_path / ("x" * 300) / "history.sqlite", lambda: failures.append(None))
    assert cache.read("coredns", 0.0) == ()
