from __future__ import annotations

import errno
import os
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.time.clock import Clock
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.state_file.state_file import SAMPLES, SampleFile, StateFile
from tests.adapter.nodes.state_file.grids import END, grid, samples

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from adapter.nodes.model.samples import SampleSet

MEANING = "m"


class Time:
    def __init__(self) -> None:
        self.now = 1000.0
        self.clock = Clock(monotonic=lambda: self.now, wall=lambda: END + 5.0)


def cpu_of(*names: str, end: int = END) -> SampleSet:
    return samples(grid(LoadResource.CPU, names, end=end))


def nodes_of(found: SampleSet | None) -> tuple[str, ...] | None:
    return None if found is None else found.grids[LoadResource.CPU].nodes


def file_at(path: Path, time: Time | None = None, meaning: str = MEANING) -> SampleFile:
    return StateFile(path, meaning, SAMPLES, (time or Time()).clock)


def written(path: Path, found: SampleSet, meaning: str = MEANING) -> bytes:
    file = file_at(path, meaning=meaning)
    file.offer(found)
    assert file.write_if_due()
    return path.read_bytes()


def test_a_restart_reads_the_samples_that_were_offered_last(tmp_path: Path) -> None:
    path = tmp_path / "nodes.state"
    file = file_at(path)
    file.offer(cpu_of("old"))
    file.offer(cpu_of("new"))
    assert file.write_if_due()
    found = file_at(path).read()
    assert nodes_of(found) == ("new",)
    assert found is not None
    assert found.from_file
    assert found.grids[LoadResource.CPU].end == END
    assert os.listdir(tmp_path) == ["nodes.state"]  # noqa: PTH208 - temporary files, too
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_file_is_written_at_most_every_30_seconds(tmp_path: Path) -> None:
    time = Time()
    file = file_at(tmp_path / "f", time)
    writes = []
    for _ in range(13):
        file.offer(cpu_of("a"))
        writes.append(file.write_if_due())
        time.now += 10
    assert writes == [number % 3 == 0 for number in range(13)]


def test_without_new_samples_nothing_is_written(tmp_path: Path) -> None:
    file = file_at(tmp_path / "f")
    assert not file.write_if_due()
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_is_not_an_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert file_at(tmp_path / "f").read() is None
    assert file_at(tmp_path / "no" / "folder").read() is None
    assert caplog.records == []


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def changed(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def of_the_future(path: Path) -> None:
    written(path, cpu_of("a", end=END + 3600))


@pytest.mark.parametrize(
    ("harm", "problem"),
    [
        (cut, "it is damaged or cut off"),
        (changed, "it is damaged or cut off"),
        (lambda path: path.write_bytes(b""), "it is damaged or cut off"),
        (lambda path: written(path, cpu_of("a"), meaning="other"), "its samples come from other queries"),
        (of_the_future, "ahead of this machine's clock"),
        (lambda path: path.chmod(0o602), "any user can write it (mode 602)"),
    ],
    ids=["cut", "changed", "empty", "other-queries", "future", "harness-writable"],
)
def test_a_file_that_cannot_be_used_is_reported_once_and_moved_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, harm: Callable[[Path], object], problem: str
) -> None:
    path = tmp_path / "f"
    written(path, cpu_of("a"))
    harm(path)
    content = path.read_bytes()
    assert file_at(path).read() is None
    assert not path.exists()
    assert (tmp_path / "f.unused").read_bytes() == content
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert problem in record.__dict__["fields"]["problem"]


@pytest.mark.parametrize(("ahead", "is_used"), [(60, True), (61, False)])
def test_a_clock_may_be_a_minute_behind_the_newest_sample(tmp_path: Path, ahead: int, *, is_used: bool) -> None:
    path, time = tmp_path / "f", Time()
    written(path, cpu_of("a"))
    time.clock = Clock(monotonic=lambda: time.now, wall=lambda: float(END - ahead))
    assert (nodes_of(file_at(path, time).read()) == ("a",)) is is_used


def test_a_file_of_another_user_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "f"
    written(path, cpu_of("a"))
    os.chown(path, 12345, -1) if os.geteuid() == 0 else monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert file_at(path).read() is None
    assert "belongs to user" in caplog.records[0].__dict__["fields"]["problem"]


def test_a_named_pipe_does_not_block_the_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    os.mkfifo(tmp_path / "f", 0o600)
    assert file_at(tmp_path / "f").read() is None
    assert caplog.records[0].__dict__["fields"]["problem"] == "it is not a regular file"


def test_a_directory_in_place_of_the_file_is_kept_and_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "f").mkdir()
    file = file_at(tmp_path / "f")
    assert file.read() is None
    file.offer(cpu_of("a"))
    assert not file.write_if_due()
    assert [path.name for path in tmp_path.iterdir()] == ["f"]
    read, write = caplog.records
    assert read.__dict__["fields"]["problem"] == "it is a directory: name a file"
    assert write.getMessage().endswith("Is a directory: name a file")


def test_a_missing_folder_is_reported_once_and_so_is_the_recovery(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    time = Time()
    file = file_at(tmp_path / "folder" / "f", time)
    for _ in range(3):
        file.offer(cpu_of("a"))
        assert not file.write_if_due()
        time.now += 30
    (tmp_path / "folder").mkdir()
    file.offer(cpu_of("a"))
    with caplog.at_level("INFO"):
        assert file.write_if_due()
    failure, recovery = (record.getMessage() for record in caplog.records)
    assert failure.endswith("No such file or directory: create the folder, or name a file in one that exists")
    assert recovery.endswith("again")


@pytest.mark.parametrize("newer", [None, "new"])
def test_a_failed_write_is_repeated_with_the_newest_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, newer: str | None
) -> None:
    time, path = Time(), tmp_path / "f"
    file = file_at(path, time)

    def full(_descriptor: int) -> None:
        if newer is not None:
            file.offer(cpu_of(newer))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    file.offer(cpu_of("old"))
    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", full)
        assert not file.write_if_due()
    assert not file.write_if_due()
    time.now += 30
    assert file.write_if_due()
    assert nodes_of(file_at(path).read()) == (newer or "old",)
    time.now += 30
    assert not file.write_if_due(), "nothing is left to be written"


def test_a_full_disk_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "f"
    old = written(path, cpu_of("old"))

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    file = file_at(path)
    file.offer(cpu_of("new"))
    assert not file.write_if_due()
    assert path.read_bytes() == old
    assert [found.name for found in tmp_path.iterdir()] == ["f"]
    assert "No space left on device: free some space; the old file is kept" in caplog.records[0].getMessage()


def test_a_huge_file_in_another_format_is_not_loaded_into_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "nodes.state"
    with path.open("wb") as file:
        file.truncate(128 << 20)
    tracemalloc.start()
    try:
        assert file_at(path).read() is None
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 << 20
    assert "is not used" in caplog.text
    assert (tmp_path / "nodes.state.unused").exists()
