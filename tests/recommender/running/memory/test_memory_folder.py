from __future__ import annotations

import errno
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from recommender.decisions.memory import LastValue, Memory
from recommender.kinds.proportional.memory import ProportionalMemory
from recommender.running.memory.folder_store import FolderMemoryStore
from recommender.running.memory.memory_document import encode_memory
from recommender.running.memory.store_protocol import MemoryUnavailableError, ProcessMemoryStore, StoredMemory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FIRST = Memory(last=LastValue(3, 1.0, 2.0), own=ProportionalMemory(rungs={"nodes": 3}))
SECOND = replace(FIRST, changes=(1.0,))


class Killed(BaseException):
    """Raised as if the process had been killed at this point."""


def test_a_memory_outlives_the_process(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    store = FolderMemoryStore(folder)
    assert store.load("web") is None
    assert store.save("web", FIRST, urgent=False)
    assert FolderMemoryStore(folder).load("web") == StoredMemory(FIRST)
    assert store.load("dns") is None


def test_equal_content_is_written_once(tmp_path: Path) -> None:
    results: list[str] = []
    store = FolderMemoryStore(tmp_path, results.append)
    for _ in range(3):
        assert store.save("web", FIRST, urgent=True)
    assert results == ["ok"]
    again = FolderMemoryStore(tmp_path, results.append)
    assert again.load("web") == StoredMemory(FIRST)
    assert again.save("web", FIRST, urgent=True)
    assert results == ["ok"]


@pytest.mark.parametrize("step", ["os.fsync", "os.replace"], ids=["synchronized", "renamed"])
@pytest.mark.parametrize("before", [FIRST, None], ids=["replaced", "created"])
def test_a_kill_before_the_file_is_synced_and_renamed_leaves_the_old_content(
    step: str, before: Memory | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FolderMemoryStore(tmp_path)
    if before is not None:
        store.save("web", before, urgent=True)

    def kill(*_: Any, **__: Any) -> None:  # noqa: ANN401 - whatever it is called with
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(step, kill)
        with pytest.raises(Killed):
            store.save("web", SECOND, urgent=True)
    started_again = FolderMemoryStore(tmp_path)
    assert started_again.load("web") == (None if before is None else StoredMemory(before))
    assert started_again.save("web", SECOND, urgent=True)
    assert FolderMemoryStore(tmp_path).load("web") == StoredMemory(SECOND)


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"{}", encode_memory("dns", FIRST).encode()], ids=["empty", "binary", "no", "foreign"]
)
def test_a_broken_file_is_moved_aside_and_logged(
    content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "tidewatch-recommender-web.json"
    path.write_bytes(content)
    store = FolderMemoryStore(tmp_path)
    assert store.load("web") is None
    assert path.with_name(f"{path.name}.broken").read_bytes() == content
    assert "starts without cool-downs" in caplog.text
    assert store.save("web", FIRST, urgent=True)


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_an_unreadable_file_is_not_treated_as_empty_and_does_not_block_others(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "tidewatch-recommender-web.json")
    store = FolderMemoryStore(tmp_path)
    with pytest.raises(MemoryUnavailableError, match=r"cannot be read: (Is a directory|it is not a regular file)"):
        store.load("web")
    os.mkfifo(tmp_path / ".tidewatch-recommender-api.json.new")
    assert store.save("api", FIRST, urgent=True)
    assert FolderMemoryStore(tmp_path).load("api") == StoredMemory(FIRST)


def test_a_full_disk_is_a_failure_that_is_logged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    results: list[str] = []
    store = FolderMemoryStore(tmp_path, results.append)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert not store.save("web", FIRST, urgent=True)
        assert not store.save("web", FIRST, urgent=True)
    assert store.save("web", FIRST, urgent=True)
    assert results == ["error", "error", "ok"]
    assert caplog.text.count("No space left on device") == 1


def test_a_process_without_rights_keeps_its_memory_while_it_runs() -> None:
    store = ProcessMemoryStore()
    assert store.load("web") is None
    assert store.save("web", FIRST, urgent=True)
    assert store.load("web") == StoredMemory(FIRST)
    assert not store.needs_load("web")
