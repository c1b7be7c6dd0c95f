"""The memory of a removed recommendation leaves the process once it is stored, and is read again if it comes back."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from recommender.decisions.memory import Memory
from recommender.decisions.record import TargetReference
from recommender.running.memory.folder_store import FolderMemoryStore
from recommender.running.memory.memories import Memories
from recommender.running.memory.store_protocol import ProcessMemoryStore, ShardTooLargeError, StoredMemory, stored_name
from tests.recommender.running.memory.config_map_harness import FIRST, SECOND, THIRD, Harness
from tests.support.apiserver_kinds import CONFIG_MAPS

if TYPE_CHECKING:
    from pathlib import Path

    from recommender.running.memory.store_protocol import MemoryStore

MEMORY_SECONDS = 3.0
SHARDS = 2
TARGETS = tuple(TargetReference("apps/v1", "Deployment", "shop", name) for name in ("web", "chat", "mail"))


@dataclass
class Process:
    """The memories of a process with one recommendation, which may be removed and added again."""

    store: MemoryStore
    has_series: bool
    """Whether the recommendation has `forEach`."""
    now: float = 0.0
    memories: Memories = field(init=False)

    def __post_init__(self) -> None:
        self.memories = Memories(self.store, lambda: self.now)

    def of(self, one: Memory) -> Memory:
        """Return the memory of a recommendation whose value, or that of each of its targets, is this one."""
        return Memory(by_target=dict.fromkeys(TARGETS, one)) if self.has_series else one

    def poll(self, decided: Memory | None = None) -> Memory:
        """Load the memory, decide the next one if there is one, and return the loaded one."""
        self.memories.begin(("web",), MEMORY_SECONDS, {"web": SHARDS} if self.has_series else {})
        loaded = self.memories.load("web")
        if decided is not None:
            self.memories.remember("web", self.of(decided))
        return loaded

    def poll_without_it(self, polls: int = 3) -> None:
        for _ in range(polls):
            self.memories.begin((), MEMORY_SECONDS)


KINDS = pytest.mark.parametrize("has_series", [False, True], ids=["one value", "forEach"])


@KINDS
def test_the_file_of_a_recommendation_that_comes_back_is_read_again(tmp_path: Path, *, has_series: bool) -> None:
    process = Process(FolderMemoryStore(tmp_path), has_series)
    process.poll()
    process.poll(FIRST)
    process.poll_without_it()
    for file in tmp_path.iterdir():
        file.unlink()
    assert process.poll() == Memory(), "the removed file is not replaced by what the process remembered"


@KINDS
def test_a_recommendation_that_is_not_removed_keeps_its_memory(tmp_path: Path, *, has_series: bool) -> None:
    process = Process(FolderMemoryStore(tmp_path), has_series)
    process.poll()
    process.poll(FIRST)
    for file in tmp_path.iterdir():
        file.unlink()
    assert process.poll() == process.of(FIRST)


@KINDS
def test_a_memory_that_is_still_to_be_written_is_not_lost(*, has_series: bool) -> None:
    """The last change is stored, whether the recommendation comes back before or after that."""
    harness = Harness()
    store = harness.process()
    process = Process(store, has_series)
    process.poll()
    for decided in (FIRST, SECOND):
        process.poll(decided)
        store.flush()
    process.poll(THIRD)
    process.poll_without_it()
    store.flush()
    assert process.poll() == process.of(THIRD)
    process.poll_without_it()
    harness.now += 60.0
    store.flush()
    process.poll_without_it()
    assert process.poll() == process.of(THIRD)
    assert Process(harness.process(), has_series).poll() == process.of(THIRD)


@KINDS
def test_a_change_that_could_not_be_written_stays_in_the_process(tmp_path: Path, *, has_series: bool) -> None:
    folder = tmp_path / "state"
    process = Process(FolderMemoryStore(folder), has_series)
    process.poll()
    folder.write_text("a file in place of the folder")
    process.poll(SECOND)
    process.poll_without_it()
    folder.unlink()
    assert process.poll() == process.of(SECOND)


@KINDS
def test_config_maps_of_removed_recommendations_are_forgotten(*, has_series: bool) -> None:
    harness = Harness()
    store = harness.process()
    process = Process(store, has_series)
    process.poll()
    process.poll(FIRST)
    store.flush()
    process.poll_without_it()
    assert store.needs_load("web", 0 if has_series else None)
    reads = harness.calls.count("GET")
    assert process.poll() == process.of(FIRST)
    assert harness.calls.count("GET") > reads


def test_the_brakes_of_a_recommendation_that_comes_back_are_those_that_were_stored(tmp_path: Path) -> None:
    process = Process(FolderMemoryStore(tmp_path), has_series=False)
    process.poll()
    braked = replace(FIRST, changes=(1.0, 2.0, 3.0))
    process.poll(braked)
    process.poll_without_it()
    assert process.poll() == braked


@KINDS
def test_a_memory_leaves_once_its_folder_can_be_written_again(tmp_path: Path, *, has_series: bool) -> None:
    folder = tmp_path / "state"
    process = Process(FolderMemoryStore(folder), has_series)
    process.poll()
    folder.write_text("a file in place of the folder")
    process.poll(SECOND)
    process.memories.store_now("web", TARGETS[0])
    process.poll_without_it()
    folder.unlink()
    process.poll_without_it()
    assert process.poll() == process.of(SECOND)
    process.poll_without_it()
    for file in folder.iterdir():
        file.unlink()
    assert process.poll() == Memory()


@KINDS
@pytest.mark.parametrize("obstacle", ["changed", "foreign"])
def test_a_memory_that_must_not_be_written_leaves_with_its_recommendation(
    monkeypatch: pytest.MonkeyPatch, obstacle: str, *, has_series: bool
) -> None:
    """Its ConfigMap has no label of this program, or another process has changed it."""
    harness = Harness()
    store = harness.process()
    process = Process(store, has_series)
    if obstacle == "foreign":
        for name in (stored_name("web"), *(f"{stored_name('web')}-{shard}" for shard in range(SHARDS))):
            harness.objects.put(CONFIG_MAPS, "monitoring", name, {"data": {}})
    process.poll()
    process.poll(FIRST)
    store.flush()
    if obstacle == "changed":
        other = harness.process()
        rival = Process(other, has_series)
        rival.poll()
        rival.poll(SECOND)
        other.flush()
        process.memories.remember("web", process.of(THIRD))
        harness.now += 60.0
        store.flush()
    process.memories.remember("web", process.of(replace(THIRD, changes=(1.0, 2.0, 3.0))))
    process.poll_without_it()
    harness.now += 60.0
    store.flush()
    process.poll_without_it()
    saves: Counter[str] = Counter()
    monkeypatch.setattr(store, "save", lambda *_given, **_named: saves.update(["save"]))
    process.poll_without_it(20)
    assert not saves
    reads = harness.calls.count("GET")
    process.poll()
    assert harness.calls.count("GET") > reads, "the memory has left, and is read again"


class _Limited(ProcessMemoryStore):
    """A store with a limit, which counts what it is given."""

    def __init__(self, *, is_current: bool = True) -> None:
        super().__init__()
        self.given: Counter[int | None] = Counter()
        self.is_current = is_current

    def load(self, name: str, shard: int | None = None) -> StoredMemory | None:
        return super().load(name, shard) if self.is_current else StoredMemory(FIRST, is_current=False)

    def save(self, name: str, memory: Memory, shard: int | None = None, shards: int = 0, *, urgent: bool) -> bool:
        self.given[shard] += 1
        if memory.by_target:
            raise ShardTooLargeError("it is too large")
        return super().save(name, memory, shard, shards, urgent=urgent)


def test_shards_that_are_too_large_leave_with_their_recommendation() -> None:
    store = _Limited()
    process = Process(store, has_series=True)
    process.poll()
    process.poll(FIRST)
    before = store.given.total()
    process.poll_without_it(20)
    assert store.given.total() <= before + SHARDS


def test_a_memory_of_a_former_version_is_written_once_and_leaves_with_its_recommendation() -> None:
    store = _Limited(is_current=False)
    process = Process(store, has_series=False)
    process.poll()
    process.poll_without_it(20)
    assert store.given == {None: 1}
