"""Recordings that are damaged, or from a clock that was wrong."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.values.constraints import LocalVolume, PodScheduling
from recommender.recording.event_log import files_of
from recommender.recording.reading import read_recording
from recommender.recording.recording import RecordingError
from tests.recommender.kinds.cluster_size.builders import node, pod
from tests.recommender.recording.written_recordings import HOUR, START, Look, write

if TYPE_CHECKING:
    from pathlib import Path

    from recommender.recording.recording import Recording


def test_a_clock_that_is_briefly_years_ahead_deletes_no_files(tmp_path: Path) -> None:
    days: list[Look] = [(START + 24 * HOUR * day, [node("n1")], []) for day in range(9)]
    write(tmp_path, days)
    before = files_of(tmp_path)
    ahead = START + 60 * 365 * 24 * HOUR
    write(tmp_path, [(ahead, [node("n1")], []), (START + 10 * 24 * HOUR, [node("n1")], [])])
    assert [file for file in files_of(tmp_path) if file in before] == before
    write(tmp_path, [(ahead + 48 * HOUR, [node("n1")], [])])
    assert not set(before).intersection(files_of(tmp_path)), "it was no moment"


def test_files_from_a_clock_ahead_are_not_replayed_and_are_deleted_once_their_time_is_recorded(tmp_path: Path) -> None:
    def days(first: int, last: int) -> list[Look]:
        return [
            (START + 24 * HOUR * day + step, [node("n1")], []) for day in range(first, last) for step in (0.0, 60.0)
        ]

    write(tmp_path, [*days(0, 2), *days(100, 101), *days(2, 4)])
    ahead = files_of(tmp_path)[-1]
    found = read_recording(tmp_path, last_seconds=24 * HOUR, now=START + 4 * 24 * HOUR)
    assert found.end == START + 3 * 24 * HOUR + 60
    assert found.notes == (f"A file is left out: {ahead} begins in the future, so a clock was wrong.",)
    assert read_recording(ahead, now=START).start == START + 100 * 24 * HOUR, "nothing else shows the time"
    write(tmp_path, days(4, 29))
    assert ahead.exists(), "the clock may be behind now"
    write(tmp_path, days(29, 33))
    assert not ahead.exists()


def test_files_from_a_clock_ahead_are_deleted_first(tmp_path: Path) -> None:
    pods = [pod(f"web-{number}", node="n1", controller=f"w{number}") for number in range(50)]
    write(tmp_path, [(START + 24 * HOUR * day, [node("n1")], pods) for day in (100, *range(8))], most_bytes=50_000)
    names = [file.name for file in files_of(tmp_path)]
    assert names[-1] == f"recording-{int(START + 7 * 24 * HOUR) * 1000:015d}.jsonl"


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "covers no time"), (b"no json\n", "is not a recording"), (b'["s",9,1.0]\n', "version 9")],
)
def test_file_that_is_not_a_recording_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "recording-1.jsonl"
    file.write_bytes(content)
    with pytest.raises(RecordingError, match=message):
        read_recording(file)


def test_fifo_instead_of_a_recording_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "recording-1.jsonl"
    os.mkfifo(path)
    with pytest.raises(RecordingError, match=r"recording-1\.jsonl cannot be read: it is not a regular file: name"):
        read_recording(path)


def damaged(folder: Path, old: bytes, new: bytes) -> Recording:
    """Read a recording after replacing a text in the first of its two files."""
    for start in (START, START + HOUR):
        limited = pod("web", node="n1", scheduling=PodScheduling(local_volumes=(("cache", LocalVolume.EMPTY_DIR),)))
        write(folder, [(start, [node("n1")], [limited]), (start + 60, [node("n1")], [limited])])
    first = files_of(folder)[0]
    content = first.read_bytes()
    assert old in content
    first.write_bytes(content.replace(old, new, 1))
    return read_recording(folder)


def test_file_with_a_damaged_first_line_does_not_affect_others(tmp_path: Path) -> None:
    found = damaged(tmp_path, b'["s"', b"[")
    assert (found.start, found.end, len(found.pods)) == (START + HOUR, START + HOUR + 60, 1)
    (note,) = found.notes
    assert note.startswith("A file is left out: ")
    assert "is not a recording" in note


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"emptyDir"', b'"tmpfs"', "tmpfs"),
        (b'["k",0,', b'["k",5,', "a pod has a kind that the file does not state"),
        (b'["t",', b'["t",1e300,', "a time of 1e+300 s since 1970 is impossible"),
        (b'["t",', b'["t",-1,', "a time of -1 s since 1970 is impossible"),
    ],
    ids=["unknown kind of volume", "unknown kind of pod", "time beyond all clocks", "time before 1970"],
)
def test_impossible_line_ends_its_file_and_does_not_affect_others(
    tmp_path: Path, old: bytes, new: bytes, message: str
) -> None:
    found = damaged(tmp_path, old, new)
    assert (found.end, len(found.pods)) == (START + HOUR + 60, 1)
    (note,) = found.notes
    assert message in note
    assert note.endswith("; the rest of the file is left out.")


def test_pods_without_requests_are_counted_in_a_note(tmp_path: Path) -> None:
    looks = [
        (START + at, [node("n1")], [pod("web", node="n1"), pod("idle", node="n1", cpu="", memory="")]) for at in (0, 60)
    ]
    write(tmp_path, looks)
    assert read_recording(tmp_path).notes == ("Without requests for CPU and memory, 1 of 2 pods takes no room.",)


@pytest.mark.parametrize(
    "scheduling",
    [PodScheduling(claims=("data-db-0",)), PodScheduling(resource_claims=("gpu",))],
    ids=["of a volume", "of devices"],
)
def test_pods_whose_claims_are_not_recorded_are_counted_in_a_note(tmp_path: Path, scheduling: PodScheduling) -> None:
    pods = [pod("db-0", "2", node="n1", scheduling=scheduling), pod("web-1", "2", node="n1")]
    write(tmp_path, [(START, [node("n1")], pods), (START + 60, [node("n1")], pods)])
    (note,) = read_recording(tmp_path).notes
    assert "1 pod had, are not recorded" in note


def test_recording_from_a_wrong_clock_is_replayed_in_part_or_refused(tmp_path: Path) -> None:
    for start in (60.0, START):
        write(tmp_path, [(start, [node("n1")], []), (start + 60, [node("n1")], [])])
    with pytest.raises(RecordingError, match=r"a clock was wrong .*: choose the time with --last and --end"):
        read_recording(tmp_path)
    assert read_recording(tmp_path, last_seconds=60.0).start == START
