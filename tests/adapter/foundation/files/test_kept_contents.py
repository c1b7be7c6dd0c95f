"""Contents that outlive a worker are either whole or absent."""

from __future__ import annotations

import os
import resource
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from adapter.foundation.files.file_contents import FileContent, UnreadFileError
from adapter.foundation.files.kept_contents import KeptContents

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

LONG = FileContent(Path("a.yaml"), "ä\n" * 1000)
MIDDLE = FileContent(Path("a.yaml"), "b" * 300)
SHORT = FileContent(Path("folder/b.yaml"), "")


def test_contents_kept_by_a_child_process_are_found_by_its_parent() -> None:
    kept = KeptContents()
    assert kept.versions() == ()
    for contents in ((LONG, SHORT), (SHORT,), (LONG,)):
        if os.fork() == 0:
            kept.keep(contents)
            os._exit(0)
        assert os.wait()[1] == 0
        assert kept.versions()[-1] == contents
    assert kept.versions() == ((LONG, SHORT), (SHORT,), (LONG,))


def test_a_limited_number_of_versions_is_kept_until_earlier_ones_are_forgotten() -> None:
    kept = KeptContents()
    for number in range(100):
        for _ in range(2):
            kept.keep((FileContent(Path("a.yaml"), str(number)),))
    assert [version[0].text for version in kept.versions()] == [str(number) for number in range(92, 100)]
    kept.forget_earlier()
    assert [version[0].text for version in kept.versions()] == ["99"]
    for letter in "abcd":
        kept.keep((FileContent(Path("a.yaml"), letter * 6 * 2**20),))
    assert [version[0].text[0] for version in kept.versions()] == ["c", "d"]
    kept.keep((FileContent(Path("a.yaml"), "e" * 20 * 2**20),))
    assert [version[0].text[0] for version in kept.versions()] == ["e"]


def test_a_file_that_could_not_be_read_is_left_out() -> None:
    kept = KeptContents()
    kept.keep((FileContent(Path("c.yaml"), "", UnreadFileError(Path("c.yaml"), "gone", "write it")), SHORT))
    assert kept.versions() == ((SHORT,),)


def test_an_incomplete_write_leaves_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = KeptContents()
    kept.keep((LONG,))
    monkeypatch.setattr("adapter.foundation.files.kept_contents._digest", lambda _: b"0" * 16)
    kept.keep((SHORT,))
    monkeypatch.undo()
    assert kept.versions() == ()


@contextmanager
def limited_file_sizes(most: int) -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_contents_beyond_the_limit_on_file_sizes_leave_the_earlier_ones(caplog: pytest.LogCaptureFixture) -> None:
    kept = KeptContents()
    with limited_file_sizes(1000):
        for contents in ((SHORT,), (MIDDLE,), (LONG,)):
            kept.keep(contents)
    assert kept.versions() == ((SHORT,), (MIDDLE,))
    (record,) = caplog.records
    assert record.getMessage() == (
        "the configuration is not kept for a replacement of this worker: File too large: if its files are unusable "
        "when it starts, the replacement uses an earlier configuration or cannot start: raise the limit on file sizes "
        "(ulimit -f)"
    )
    # All of the long one is in force, so that the others are out of date.
    kept.forget_earlier()
    assert kept.versions() == ()
    kept.keep((SHORT,))
    kept.forget_earlier()
    assert kept.versions() == ((SHORT,),)


def test_the_oldest_contents_make_room_for_the_newest(caplog: pytest.LogCaptureFixture) -> None:
    kept = KeptContents()
    others = tuple((FileContent(Path("a.yaml"), letter * 300),) for letter in "abcd")
    with limited_file_sizes(900):
        for contents in others:
            kept.keep(contents)
    assert kept.versions() == others[-2:]
    assert not caplog.records
