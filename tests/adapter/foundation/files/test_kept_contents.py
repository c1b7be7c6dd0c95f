"""Contents that outlive a worker are either whole or absent."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from adapter.foundation.files.file_contents import FileContent, UnreadFileError
from adapter.foundation.files.kept_contents import KeptContents

if TYPE_CHECKING:
    import pytest

LONG = FileContent(Path("a.yaml"), "ä\n" * 1000)
SHORT = FileContent(Path("folder/b.yaml"), "")


def test_what_was_kept_last_is_found_by_another_process() -> None:
    kept = KeptContents()
    assert kept.versions() == ()
    for contents in ((LONG, SHORT), (SHORT,), (LONG,)):
        if os.fork() == 0:
            kept.keep(contents)
            os._exit(0)
        assert os.wait()[1] == 0
        assert kept.versions()[-1] == contents
    assert kept.versions() == ((LONG, SHORT), (SHORT,), (LONG,))


def test_versions_are_kept_until_all_is_well_and_never_more_than_a_few() -> None:
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


def test_of_a_write_that_did_not_end_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = KeptContents()
    kept.keep((LONG,))
    monkeypatch.setattr("adapter.foundation.files.kept_contents._digest", lambda _: b"0" * 16)
    kept.keep((SHORT,))
    monkeypatch.undo()
    assert kept.versions() == ()
