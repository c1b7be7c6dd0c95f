from __future__ import annotations

import itertools
import os
import stat
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.files.file_contents import FileContent, FilesError, empty_folders, read_each, read_files
from adapter.foundation.files.followed_files import FollowedFiles, by_content, by_stamp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


def joined(contents: Sequence[FileContent]) -> str:
    """Join the contents, and refuse one that says `bad`."""
    text = "|".join(content.text for content in contents)
    if "bad" in text:
        raise ValueError("this is bad")
    return text


UNUSABLE = (FilesError, ValueError)


class Watch:
    """Watched files, and their reports."""

    def __init__(self, *paths: Path, settled_after: int = 1) -> None:
        self.taken: list[str] = []
        self.refused: list[str] = []
        self.files = FollowedFiles(
            by_content(paths),
            joined,
            unusable=UNUSABLE,
            settled_after=settled_after,
            on_success=self.taken.append,
            on_failure=lambda error: self.refused.append(str(error)),
        )

    def look(self) -> str:
        self.files.check()
        return self.files.value


def test_a_change_is_loaded_and_reported_once(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("one")
    watch = Watch(file)
    assert (watch.look(), watch.taken) == ("one", [])
    file.write_text("two")
    assert (watch.look(), watch.look(), watch.taken) == ("two", "two", ["two"])


def test_a_change_with_the_same_length_and_time_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("one")
    watch = Watch(file)
    before = file.stat()
    file.write_text("two")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert watch.look() == "two"


def test_a_file_that_is_still_being_written_is_not_loaded(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("one")
    watch = Watch(file, settled_after=2)
    for half in ("", "t", "bad", "tw"):
        file.write_text(half)
        assert watch.look() == "one"
    file.unlink()
    watch.look()
    file.write_text("two")
    assert (watch.look(), watch.look(), watch.look()) == ("one", "two", "two")
    assert (watch.taken, watch.refused) == (["two"], [])


def test_a_change_that_is_reverted_before_it_settles_is_ignored(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("one")
    watch = Watch(file, settled_after=2)
    for text in ("two", "one", "two", "one"):
        file.write_text(text)
        watch.look()
    assert (watch.taken, watch.refused) == ([], [])


def test_a_file_that_stays_broken_is_reported_once(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("one")
    watch = Watch(file, settled_after=2)
    file.write_text("bad")
    for _ in range(4):
        watch.look()
    file.unlink()
    for _ in range(4):
        watch.look()
    assert len(watch.refused) == 2
    file.write_text("one")
    assert (watch.look(), watch.look(), watch.taken) == ("one", "one", ["one"])


def test_a_touched_file_is_not_loaded_again(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("one")
    watch = Watch(file)
    file.write_text("one")
    watch.look()
    assert watch.taken == []


def test_the_last_good_value_stays_in_use_and_a_bad_one_is_reported_once(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("good")
    watch = Watch(file)
    file.write_text("bad")
    assert (watch.look(), watch.look(), watch.refused) == ("good", "good", ["this is bad"])
    file.write_text("bad again")
    watch.look()
    assert len(watch.refused) == 2
    file.write_text("good")
    assert (watch.look(), watch.taken) == ("good", ["good"])


def test_a_removed_file_is_reported_and_loaded_when_it_returns(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("one")
    watch = Watch(file)
    file.unlink()
    assert (watch.look(), watch.look()) == ("one", "one")
    assert watch.refused == [
        f"{file}: cannot read the file: No such file or directory: check that it exists and is readable"
    ]
    file.write_text("one")
    assert (watch.look(), watch.taken) == ("one", ["one"])


def test_a_mounted_config_map_is_swapped_by_its_hidden_link(tmp_path: Path) -> None:
    for version in ("first", "second"):
        (tmp_path / f"..{version}").mkdir()
        (tmp_path / f"..{version}" / "rules.yaml").write_text(version)
    (tmp_path / "..data").symlink_to("..first")
    (tmp_path / "rules.yaml").symlink_to("..data/rules.yaml")
    by_file, by_folder = Watch(tmp_path / "rules.yaml"), Watch(tmp_path)
    assert (by_file.look(), by_folder.look()) == ("first", "first")
    (tmp_path / "..next").symlink_to("..second")
    (tmp_path / "..next").rename(tmp_path / "..data")
    assert (by_file.look(), by_folder.look()) == ("second", "second")


def test_a_folder_is_read_as_its_yaml_files_in_order_of_name(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yaml", ".hidden.yaml", "c.json", "d.yml"):
        (tmp_path / name).write_text(name)
    watch = Watch(tmp_path)
    assert watch.look() == "a.yaml|b.yaml"
    (tmp_path / "aa.yaml").write_text("new")
    assert watch.look() == "a.yaml|new|b.yaml"
    (tmp_path / "b.yaml").unlink()
    assert watch.look() == "a.yaml|new"


def test_moving_text_from_one_file_to_the_next_is_a_change(tmp_path: Path) -> None:
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    first.write_text("xy")
    second.write_text("z")
    watch = Watch(tmp_path)
    first.write_text("x")
    second.write_text("yz")
    assert watch.look() == "x|yz"


def test_an_unusable_file_at_the_start_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FilesError, match="cannot read the file: No such file"):
        Watch(tmp_path / "missing.yaml")
    (tmp_path / "a.yaml").write_text("bad")
    with pytest.raises(ValueError, match="this is bad"):
        Watch(tmp_path)


def test_a_fault_of_the_loader_is_raised_and_not_treated_as_bad_content(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("one")
    faults = iter([None, KeyError("a fault")])

    def load(_: Sequence[FileContent]) -> int:
        fault = next(faults)
        if fault:
            raise fault
        return 1

    files = FollowedFiles(by_content([file]), load, unusable=UNUSABLE)
    file.write_text("two")
    with pytest.raises(KeyError):
        files.check()


def test_a_value_that_cannot_be_applied_is_tried_again_at_the_next_check(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("one")
    taken: list[str] = []

    def take(value: str) -> None:
        taken.append(value)
        if len(taken) < 3:
            raise KeyError("a fault")

    files = FollowedFiles(by_content([file]), joined, unusable=UNUSABLE, on_success=take)
    file.write_text("two")
    for _ in range(2):
        with pytest.raises(KeyError):
            files.check()
        assert files.value == "one"
    files.check()
    files.check()
    assert (files.value, taken) == ("two", ["two"] * 3)


def test_one_unreadable_file_of_several_is_passed_on_as_unread(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(name)
    watch = Watch(tmp_path / "a.yaml", tmp_path / "b.yaml", tmp_path / "missing")
    assert watch.look() == "a|b|"
    (tmp_path / "b.yaml").write_bytes(b"\xff")
    assert (watch.look(), watch.taken, watch.refused) == ("a||", ["a||"], [])
    (unread,) = (content.unread for content in read_each([tmp_path]) if content.unread is not None)
    assert str(unread) == f"{tmp_path}/b.yaml: byte 0 is not UTF-8: save the file as UTF-8"
    (tmp_path / "a.yaml").unlink()
    (tmp_path / "b.yaml").unlink()
    assert (watch.look(), len(watch.refused)) == ("a||", 1)


def test_a_too_large_file_is_not_read_and_the_others_are(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a")
    with (tmp_path / "b.yaml").open("wb") as stream:
        stream.truncate((16 << 20) + 1)
    (tmp_path / "c.yaml").symlink_to("c.yaml")
    a, b, c = read_each([tmp_path])
    assert (a.text, b.text, c.text) == ("a", "", "")
    assert str(b.unread) == f"{tmp_path}/b.yaml: the file is larger than 16 MiB: split it"
    assert "cannot read the file: Too many levels of symbolic links" in str(c.unread)


def test_folders_without_files_are_returned(tmp_path: Path) -> None:
    empty, full = tmp_path / "empty", tmp_path / "full"
    for folder in (empty, full):
        folder.mkdir()
    (full / "a.yaml").write_text("a")
    paths = (empty, full, tmp_path / "missing", full / "a.yaml")
    assert empty_folders(paths, read_each(paths)) == (empty,)


def test_a_file_that_is_not_utf_8_is_refused_with_the_position(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(b"ab\xff")
    with pytest.raises(FilesError, match="byte 2 is not UTF-8: save the file as UTF-8"):
        read_files([file])


def make_socket(path: Path) -> None:
    os.mknod(path, stat.S_IFSOCK | 0o600)


@pytest.mark.parametrize(
    "make",
    [os.mkfifo, os.mkdir, make_socket, lambda path: path.symlink_to("/dev/zero")],
    ids=["fifo", "folder", "socket", "device"],
)
def test_a_path_that_is_not_a_regular_file_is_refused_at_once_and_others_are_read(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    (tmp_path / "a.yaml").write_text("a")
    watch = Watch(tmp_path)
    make(tmp_path / "b.yaml")
    (tmp_path / "c.yaml").write_text("c")
    assert watch.look() == "a||c"
    (unread,) = (content.unread for content in read_each([tmp_path]) if content.unread is not None)
    reason = "cannot read it: it is not a regular file: save its content in a regular file"
    assert str(unread) == f"{tmp_path}/b.yaml: {reason}"


def test_files_are_checked_no_more_often_than_configured(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("0")
    now = [0.0]
    files = FollowedFiles(
        by_stamp([file]),
        lambda _: file.read_text(),
        unusable=(OSError,),
        look_every_seconds=1.0,
        clock=lambda: now[0],
    )
    seen = []
    for number in range(1, 9):
        replace(file, str(number))
        now[0] += 0.25
        seen.append(files.current())
    assert seen == ["0", "0", "0", "4", "4", "4", "4", "8"]


@pytest.mark.parametrize(("again", "loads"), [(False, 2), (True, 4)])
def test_a_refused_change_is_loaded_again_only_if_so_configured(tmp_path: Path, *, again: bool, loads: int) -> None:
    file = tmp_path / "a"
    file.write_text("good")
    loaded: list[str] = []
    refused: list[Exception] = []

    def load(_: None) -> str:
        loaded.append(file.read_text())
        if loaded[-1] == "bad":
            raise ValueError("this is bad")
        return loaded[-1]

    seconds = itertools.count()
    files = FollowedFiles(
        by_stamp([file]),
        load,
        unusable=(ValueError,),
        on_failure=refused.append,
        loads_refused_again=again,
        clock=lambda: float(next(seconds)),
    )
    replace(file, "bad")
    for _ in range(3):
        assert files.current() == "good"
    assert (len(loaded), len(refused)) == (loads, 1)


def replace(file: Path, text: str) -> None:
    """Replace a file as Kubernetes does: another file gets the same name."""
    new = file.with_suffix(".new")
    new.write_text(text)
    new.rename(file)
