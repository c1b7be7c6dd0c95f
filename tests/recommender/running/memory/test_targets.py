"""The memories of targets outlive the process in shards, whatever fails between two writes."""

from __future__ import annotations

import base64
import gzip
import math
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.sources.kubernetes.writing import Fence
from adapter.foundation.time.clock import Clock
from recommender.decisions.memory import LastValue, Memory
from recommender.decisions.record import TargetReference
from recommender.kinds.predictive.policy.memory import PolicyMemory, ReconnectMemory
from recommender.running.memory import config_map_store
from recommender.running.memory.config_map_store import MOST_SHARD_BYTES, ConfigMapMemoryStore
from recommender.running.memory.folder_store import FolderMemoryStore
from recommender.running.memory.memory_document import encode_shard
from recommender.running.memory.store_protocol import MemoryUnavailableError, ProcessMemoryStore
from recommender.running.memory.target_memories import SHARDS_A_POLL, TargetMemories
from tests.support.apiserver_kinds import CONFIG_MAPS
from tests.support.apiserver_objects import Direct, ObjectStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SHARDS = 32


def target(number: int) -> TargetReference:
    return TargetReference("apps/v1", "Deployment", f"ns-{number % 7}", f"web-{number}")


def memories(count: int, replicas: int = 3, decided: float = 1000.0) -> Memory:
    own = PolicyMemory(time=1.7e9, capacity=3.25, reconnect=ReconnectMemory(held_until=1.7e9 + 120))
    each = Memory(last=LastValue(replicas, decided, decided), own=own)
    return Memory(by_target={target(number): each for number in range(count)})


@dataclass
class Harness:
    """An API server, and any number of processes that lead one after another."""

    now: float = 0.0
    objects: ObjectStore = field(default_factory=ObjectStore)
    results: list[str] = field(default_factory=list)
    most_writes: float = math.inf
    """The number of writes after which the process behaves as if it were dead."""

    def process(self) -> tuple[TargetMemories, ConfigMapMemoryStore]:
        clock = Clock(lambda: self.now)
        store = ConfigMapMemoryStore(
            Direct(self.objects),
            "monitoring",
            Fence(2.0, self._permit),
            count=self.results.append,
            clock=clock,
        )
        return TargetMemories(store, clock.monotonic), store

    def _permit(self, _seconds: float) -> bool:
        return self.results.count("ok") < self.most_writes

    def lead(self, known: TargetMemories) -> Memory:
        return known.load("chat", SHARDS, math.inf)

    def poll(self, known: TargetMemories, store: ConfigMapMemoryStore, memory: Memory) -> None:
        self.lead(known)
        known.remember("chat", memory)
        for _ in range(10):
            self.now += 1.0
            store.flush()

    def names(self) -> list[str]:
        return [each["metadata"]["name"] for each in self.objects.listed(CONFIG_MAPS)]

    def contents(self) -> list[str]:
        return [each["binaryData"]["memory.json.gz"] for each in self.objects.listed(CONFIG_MAPS)]


def test_a_new_leader_continues_from_the_shards_of_the_last_one() -> None:
    harness = Harness()
    first, store = harness.process()
    assert harness.lead(first) == Memory()
    memory = memories(3)
    harness.poll(first, store, memory)
    assert len(harness.names()) <= 3, "a shard without targets is not stored"
    second, _ = harness.process()
    assert harness.lead(second) == memory


def test_the_number_of_shards_is_fixed_and_each_is_small() -> None:
    harness = Harness()
    first, store = harness.process()
    memory = memories(10_000)
    for _ in range(2 * SHARDS // SHARDS_A_POLL + 2):
        harness.poll(first, store, memory)
    assert sorted(harness.names()) == sorted(f"tidewatch-recommender-chat-{number}" for number in range(SHARDS))
    assert max(map(len, harness.contents())) < MOST_SHARD_BYTES
    assert harness.lead(harness.process()[0]) == memory
    written = len(harness.results)
    second, its_store = harness.process()
    later = memories(10_000, decided=1060.0)
    for _ in range(4):
        harness.poll(first, store, later)
    for _ in range(4):
        harness.poll(second, its_store, later)
    assert len(harness.results) == written, "what has not changed is not written again, not even after a restart"


@pytest.mark.parametrize(("before", "after"), [(1, 32), (2, 32), (32, 64), (64, 32)])
@pytest.mark.parametrize("writes", [0, 1, 2, 5, 31, 33])
def test_a_crash_while_the_number_of_shards_changes_loses_nothing(before: int, after: int, writes: int) -> None:
    harness = Harness()
    first, store = harness.process()
    memory = memories(500)
    first.load("chat", before, math.inf)
    first.remember("chat", memory)
    for _ in range(2 * before // SHARDS_A_POLL + 2):
        first.remember("chat", memory)
        for _ in range(10):
            harness.now += 1.0
            store.flush()
    harness.results.clear()
    harness.most_writes = writes
    second, _ = harness.process()
    with suppress(MemoryUnavailableError):
        assert second.load("chat", after, math.inf) == memory
    harness.most_writes = math.inf
    assert harness.process()[0].load("chat", after, math.inf) == memory
    documents = [gzip.decompress(base64.b64decode(each)) for each in harness.contents()]
    current = [document for document in documents if f'"shards":{after}}}'.encode() in document]
    assert sum(document.count(b'"namespace"') for document in current) == len(memory.by_target)


def test_a_number_of_shards_that_changes_in_a_running_process_loses_nothing_that_is_not_stored_yet() -> None:
    harness = Harness()
    first, store = harness.process()
    memory = memories(100)
    harness.poll(first, store, memory)
    first.remember("chat", memories(100, replicas=4, decided=1030.0))
    memory = first.load("chat", 1, math.inf)
    assert memory == memories(100, replicas=4, decided=1030.0)
    first.remember("chat", memory)
    for _ in range(10):
        harness.now += 1.0
        store.flush()
    assert harness.process()[0].load("chat", 1, math.inf) == memory


def test_a_number_of_shards_that_changes_after_another_leader_wrote_keeps_what_that_leader_wrote() -> None:
    harness = Harness()
    old, _ = harness.process()
    old.load("chat", 1, math.inf)
    old.remember("chat", memories(9))
    assert old.store_now("chat", target(0))
    new, _ = harness.process()
    new.load("chat", 1, math.inf)
    new.remember("chat", memories(9, replicas=4, decided=1500.0))
    assert new.store_now("chat", target(0))
    old.remember("chat", memories(9, replicas=5, decided=2000.0))
    assert not old.store_now("chat", target(0))
    assert old.load("chat", 2, math.inf) == memories(9, replicas=4, decided=1500.0)


def test_nothing_is_decided_while_shards_cannot_be_written_in_their_new_number() -> None:
    store = RefusingStore(frozenset())
    known = TargetMemories(store)
    known.load("chat", 2, math.inf)
    known.remember("chat", memories(9))
    store.refused = frozenset({0})
    with pytest.raises(MemoryUnavailableError, match="another number of shards"):
        TargetMemories(store).load("chat", 1, math.inf)
    store.refused = frozenset()
    assert TargetMemories(store).load("chat", 1, math.inf) == memories(9)


@pytest.mark.parametrize("decided", [(1000.0, 2000.0), (2000.0, 1000.0)])
def test_of_two_memories_of_a_target_the_later_one_counts(decided: tuple[float, float]) -> None:
    """A process that ends while the number of shards changes leaves a target in two of them."""
    store = ProcessMemoryStore()
    for shard, time in enumerate(decided):
        store.save("chat", memories(1, decided=time), shard, len(decided), urgent=True)
    assert TargetMemories(store).load("chat", len(decided), math.inf) == memories(1, decided=2000.0)


OF_MANY = base64.b64encode(encode_shard("chat", Memory(), 10**9)).decode()
"""A shard that somebody has written, and that claims to be one of more shards than are possible."""


@pytest.mark.parametrize("content", ["AAAA", OF_MANY], ids=["damaged", "of-too-many"])
def test_a_broken_shard_loses_only_its_own_targets(content: str, caplog: pytest.LogCaptureFixture) -> None:
    harness = Harness()
    first, store = harness.process()
    memory = memories(1000)
    for _ in range(5):
        harness.poll(first, store, memory)
    assert len(harness.names()) == SHARDS
    broken = {"binaryData": {"memory.json.gz": content}}
    harness.objects.change(CONFIG_MAPS, "monitoring", "tidewatch-recommender-chat-0", lambda one: one.update(broken))
    found = harness.lead(harness.process()[0]).by_target
    assert 900 < len(found) < 1000
    assert found.items() <= memory.by_target.items()
    (line,) = [record for record in caplog.records if "cannot be used" in record.getMessage()]
    assert line.__dict__["fields"]["config_map"] == "monitoring/tidewatch-recommender-chat-0"


def test_a_scale_call_waits_for_the_shard_of_its_target() -> None:
    harness = Harness()
    first, _ = harness.process()
    harness.lead(first)
    first.remember("chat", memories(3))
    assert first.store_now("chat", target(1))
    assert target(1) in harness.lead(harness.process()[0]).by_target
    assert not first.store_now("another", target(1))


def test_the_state_of_a_newer_leader_is_never_overwritten_even_by_a_later_decision() -> None:
    """A process that was stopped, or whose clock is ahead, decides later than the leader that it did not notice."""
    harness = Harness()
    old, old_store = harness.process()
    for _ in range(5):
        harness.poll(old, old_store, memories(20))
    new, new_store = harness.process()
    harness.lead(new)
    changed = {key: replace(each, changes=(1500.0,)) for key, each in memories(10, 4, 1500.0).by_target.items()}
    for _ in range(10):
        harness.poll(new, new_store, Memory(by_target={**memories(20).by_target, **changed}))
    later = memories(20, replicas=5, decided=2000.0)
    old.remember("chat", later)
    for number in range(10):
        assert not old.store_now("chat", target(number))
    found = harness.lead(old).by_target
    assert {key: found[key] for key in changed} == changed
    assert found.keys() == later.by_target.keys()
    for _ in range(10):
        harness.poll(old, old_store, Memory(by_target=found))
    assert harness.lead(harness.process()[0]).by_target == found


def test_a_hold_is_stored_with_the_next_poll_and_a_size_within_half_a_minute() -> None:
    harness = Harness()
    first, store = harness.process()
    memory = memories(3)
    harness.poll(first, store, memory)
    resized = memories(3, replicas=9)
    harness.poll(first, store, resized)
    assert harness.lead(harness.process()[0]) == memory
    held = PolicyMemory(time=1.7e9, capacity=3.25, reconnect=ReconnectMemory(held_until=1.7e9 + 500))
    on_hold = Memory(by_target={each: replace(one, own=held) for each, one in resized.by_target.items()})
    harness.poll(first, store, on_hold)
    assert harness.lead(harness.process()[0]) == on_hold


def test_a_forgotten_target_is_removed_from_its_shard() -> None:
    harness = Harness()
    first, store = harness.process()
    harness.poll(first, store, memories(3))
    for _ in range(4):
        harness.poll(first, store, memories(2))
    assert harness.lead(harness.process()[0]) == memories(2)


def test_shards_that_take_too_long_to_read_are_read_with_the_next_polls() -> None:
    harness = Harness()
    first, store = harness.process()
    for _ in range(5):
        harness.poll(first, store, memories(1000))
    second = TargetMemories(store, lambda: harness.now)
    store_load = store.load

    def slow(name: str, shard: int) -> object:
        harness.now += 0.1
        return store_load(name, shard)

    store.load = slow  # type: ignore[method-assign, assignment]
    with pytest.raises(MemoryUnavailableError):
        second.load("chat", SHARDS, harness.now + 2.0)
    assert second.load("chat", SHARDS, harness.now + 5.0) == memories(1000)


@dataclass
class RefusingStore(ProcessMemoryStore):
    """A store that refuses some shards."""

    refused: frozenset[int]
    tried: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def save(self, name: str, memory: Memory, shard: int | None = None, shards: int = 0, *, urgent: bool) -> bool:
        assert shard is not None
        self.tried.add(shard)
        return shard not in self.refused and super().save(name, memory, shard, shards, urgent=urgent)


def test_shards_that_cannot_be_written_do_not_keep_others_from_their_turn() -> None:
    store = RefusingStore(frozenset(range(SHARDS_A_POLL + 2)))
    known = TargetMemories(store)
    for _ in range(2 * SHARDS // SHARDS_A_POLL):
        known.load("chat", SHARDS, math.inf)
        known.remember("chat", memories(900))
    assert store.tried == set(range(SHARDS))


def test_shards_are_stored_in_a_folder_too(tmp_path: Path) -> None:
    for store in (FolderMemoryStore(tmp_path), ProcessMemoryStore()):
        known = TargetMemories(store)
        for _ in range(5):
            known.load("chat", SHARDS, math.inf)
            known.remember("chat", memories(900))
        assert TargetMemories(store).load("chat", SHARDS, math.inf) == memories(900)
    assert len(list(tmp_path.glob("*.json.gz"))) == SHARDS
    (tmp_path / "tidewatch-recommender-chat-1.json.gz").write_bytes(b"broken")
    found = TargetMemories(FolderMemoryStore(tmp_path)).load("chat", SHARDS, math.inf)
    assert 800 < len(found.by_target) < 900


def test_a_shard_that_is_too_large_is_reported_and_lets_no_scale_call_pass(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config_map_store, "MOST_SHARD_BYTES", 100)
    harness = Harness()
    known, _ = harness.process()
    known.load("chat", 1, math.inf)
    known.remember("chat", memories(9))
    assert not known.store_now("chat", target(1))
    assert harness.names() == []
    [line] = [message for message in caplog.messages if "is not stored" in message]
    assert line.endswith("lower forEach.max")


@dataclass
class DecidingStore(ProcessMemoryStore):
    """A store during whose first urgent write the loop decides again."""

    decide: list[Callable[[], None]]

    def __post_init__(self) -> None:
        super().__init__()

    def save(self, name: str, memory: Memory, shard: int | None = None, shards: int = 0, *, urgent: bool) -> bool:
        if urgent and self.decide:
            self.decide.pop()()
        return super().save(name, memory, shard, shards, urgent=urgent)


def test_a_decision_during_the_write_for_a_scale_call_is_not_lost() -> None:
    newer = memories(1, replicas=9, decided=2000.0)
    store = DecidingStore([lambda: known.remember("chat", newer)])
    known = TargetMemories(store)
    known.load("chat", 1, math.inf)
    known.remember("chat", memories(1))
    assert known.store_now("chat", target(0))
    assert TargetMemories(store).load("chat", 1, math.inf) == newer
