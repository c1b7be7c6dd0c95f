"""Whatever happens, a reader sees a file's old or new content as a whole, and nothing is left beside it."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.files.replaced_file import replace_file, replacing
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

AN_HOUR_AGO = 1.0


@pytest.fixture(autouse=True)
def _usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@given(contents=st.lists(st.binary(max_size=200), min_size=1, max_size=5), durable=st.booleans())
def test_the_file_contains_what_was_written_last(
    tmp_path_factory: pytest.TempPathFactory, contents: list[bytes], *, durable: bool
) -> None:
    path = tmp_path_factory.mktemp("folder") / "file"
    for content in contents:
        replace_file(path, content, durable=durable)
        assert path.read_bytes() == content
    assert names_in(path.parent) == ["file"]


@pytest.mark.parametrize("there", ["nothing", "file", "fifo", "link", "dangling link"])
def test_a_file_or_link_of_any_kind_is_replaced_and_no_link_is_followed(tmp_path: Path, there: str) -> None:
    folder, other = tmp_path / "folder", tmp_path / "other"
    folder.mkdir()
    path = folder / "file"
    other.write_bytes(b"untouched")
    match there:
        case "file":
            path.write_bytes(b"old and longer than the new content")
        case "fifo":
            os.mkfifo(path)
        case "link":
            path.symlink_to(other)
        case "dangling link":
            path.symlink_to(tmp_path / "nowhere")
    replace_file(path, b"new", mode=0o600)
    assert (path.is_symlink(), path.read_bytes(), other.read_bytes()) == (False, b"new", b"untouched")
    assert path.stat().st_mode & 0o777 == 0o600
    assert (names_in(folder), names_in(tmp_path)) == (["file"], ["folder", "other"])


def test_a_link_at_the_temporary_name_is_never_written_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim, path = tmp_path / "victim", tmp_path / "file"
    victim.write_bytes(b"untouched")
    monkeypatch.setattr("os.urandom", bytes)
    (tmp_path / ".file.00000000.new").symlink_to(victim)
    with pytest.raises(FileExistsError):
        replace_file(path, b"new")
    assert (victim.read_bytes(), path.exists()) == (b"untouched", False)
    assert (tmp_path / ".file.00000000.new").is_symlink()


class Interruption(BaseException):
    """An interruption like KeyboardInterrupt."""


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), ValueError(), Interruption()])
def test_an_error_keeps_the_old_file_and_leaves_no_temporary_file(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write() -> None:
        with replacing(path) as stream:
            stream.write(b"half of the new con")
            raise error

    with pytest.raises(type(error)):
        write()
    assert (path.read_bytes(), names_in(tmp_path)) == (b"old", ["file"])


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_disk_error_keeps_the_old_file_and_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match="Input/output error"):
        replace_file(path, b"new")
    assert (path.read_bytes(), names_in(tmp_path)) == (b"old", ["file"])


@pytest.mark.parametrize(
    ("name", "number"),
    [("missing/file", errno.ENOENT), ("file/below", errno.ENOTDIR), ("folder", errno.EISDIR)],
)
def test_a_path_that_cannot_be_a_file_is_an_error(tmp_path: Path, name: str, number: int) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError) as failed:
        replace_file(tmp_path / name, b"new")
    assert failed.value.errno == number
    assert names_in(tmp_path) == ["file", "folder"]


@pytest.mark.parametrize(
    ("mode", "old", "new"), [(0o666, 0o640, 0o644), (0o600, 0o644, 0o600), (None, 0o640, 0o640), (None, 0o4755, 0o755)]
)
def test_the_mode_is_the_given_one_or_that_of_the_old_file(
    tmp_path: Path, mode: int | None, old: int, new: int
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(old)
    replace_file(path, b"new", mode=mode)
    assert path.stat().st_mode & 0o7777 == new


def test_a_new_file_without_a_mode_is_for_its_owner_alone(tmp_path: Path) -> None:
    replace_file(tmp_path / "file", b"new", mode=None)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("may", [True, False])
def test_the_owner_is_kept_as_far_as_the_process_may_set_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, may: bool
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    given_to: list[tuple[int, int]] = []

    def fchown(_: int, owner: int, group: int) -> None:
        if not may:
            raise PermissionError(errno.EPERM, "Operation not permitted")
        given_to.append((owner, group))

    monkeypatch.setattr(os, "fchown", fchown)
    replace_file(path, b"new", mode=None)
    found = path.stat()
    assert given_to == ([(found.st_uid, -1), (-1, found.st_gid)] if may else [])
    assert path.read_bytes() == b"new"


def test_a_durable_file_is_synchronized_before_and_after_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def noted(name: str, call: Callable[..., None]) -> Callable[..., None]:
        def noting(*arguments: object, **named: object) -> None:
            done.append(name)
            call(*arguments, **named)

        return noting

    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, noted(name, getattr(os, name)))
    replace_file(tmp_path / "file", b"new")
    assert done == ["fsync", "replace", "fsync"]
    done.clear()
    replace_file(tmp_path / "file", b"new", durable=False)
    assert done == ["replace"]


def test_readers_see_only_whole_contents_while_several_threads_write(tmp_path: Path) -> None:
    path, wholes = tmp_path / "file", {bytes([number]) * 100_000 for number in range(4)}
    replace_file(path, bytes(100_000), durable=False)

    def write(content: bytes) -> None:
        for _ in range(20):
            replace_file(path, content, durable=False)

    writers = [threading.Thread(target=write, args=(content,)) for content in wholes]
    for writer in writers:
        writer.start()
    seen = set()
    while any(writer.is_alive() for writer in writers):
        seen.add(path.read_bytes())
    for writer in writers:
        writer.join()
    assert seen <= wholes
    assert names_in(tmp_path) == ["file"]


def _write_until_killed(path: Path) -> None:
    with replacing(path) as stream:
        stream.write(b"half")
        stream.flush()
        signal.pause()


def test_the_file_of_a_killed_writer_is_removed_after_an_hour_and_no_other(tmp_path: Path) -> None:
    path, others = tmp_path / "file", [".file.new", ".file.0123.new", ".other.01234567.new", "file.01234567.new"]
    path.write_bytes(b"old")
    for other in others:
        (tmp_path / other).touch()
        os.utime(tmp_path / other, (AN_HOUR_AGO, AN_HOUR_AGO))
    process = multiprocessing.get_context("fork").Process(target=_write_until_killed, args=(path,))
    process.start()
    until(lambda: len(names_in(tmp_path)) > len(others) + 1)
    process.kill()
    process.join()
    assert path.read_bytes() == b"old"
    (left,) = set(names_in(tmp_path)) - {"file", *others}
    replace_file(path, b"new")
    assert left in names_in(tmp_path)  # It might be another writer's.
    os.utime(tmp_path / left, (AN_HOUR_AGO, AN_HOUR_AGO))
    replace_file(path, b"newer")
    assert names_in(tmp_path) == sorted(["file", *others])


def test_the_longest_name_can_be_replaced(tmp_path: Path) -> None:
    for name in ("a" * 255, "ü" * 127):
        replace_file(tmp_path / name, b"new")
        assert (tmp_path / name).read_bytes() == b"new"
