"""Reading memories takes no more of a poll than its share, and the newest memory is stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from recommender.decisions.memory import LastValue, Memory
from recommender.decisions.record import TargetReference
from recommender.kinds.predictive.policy.memory import PolicyMemory, ReconnectMemory
from recommender.running.memory.memories import Memories
from recommender.running.memory.store_protocol import MemoryUnavailableError, ProcessMemoryStore, StoredMemory

if TYPE_CHECKING:
    from collections.abc import Callable

WEB = TargetReference("apps/v1", "Deployment", "shop", "web")
FIRST = Memory(last=LastValue(3, 1.0, 1.0))
SECOND = Memory(last=FIRST.last, changes=(1.0,))


@dataclass
class Store(ProcessMemoryStore):
    """A store in which the memories of some recommendations hang for five seconds."""

    hanging: frozenset[str] = frozenset()
    is_current: bool = True
    now: float = 0.0
    read: list[str] = field(default_factory=list)
    saved: list[Memory] = field(default_factory=list)
    on_urgent: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        super().__init__()

    def load(self, name: str, shard: int | None = None) -> StoredMemory | None:
        assert shard is None
        self.read.append(name)
        if name in self.hanging:
            self.now += 5.0
            raise MemoryUnavailableError("no answer")
        return StoredMemory(FIRST, is_current=self.is_current)

    def save(self, name: str, memory: Memory, shard: int | None = None, shards: int = 0, *, urgent: bool) -> bool:
        del name, shard, shards
        if urgent:
            self.on_urgent()
        self.saved.append(memory)
        return True

    def needs_load(self, name: str, shard: int | None = None) -> bool:
        del shard
        return name in self.hanging


def polled(memories: Memories, names: tuple[str, ...]) -> set[str]:
    """Return the recommendations that have a memory."""
    found = set()
    for name in memories.begin(names, 3.0):
        try:
            memories.load(name)
        except MemoryUnavailableError:
            continue
        found.add(name)
    return found


def test_memories_that_hang_take_a_limited_part_of_each_poll_and_do_not_block_others() -> None:
    names = ("a", "b", "c", "d", "good")
    store = Store(frozenset(names[:-1]))
    memories = Memories(store, lambda: store.now)
    polls = []
    for _ in range(len(names)):
        before = store.now
        polls.append(polled(memories, names))
        assert store.now - before <= 8.0
        store.now += 10.0
    assert polls[-1] == {"good"}, "the memories that hang have had their turn"
    assert set(store.read) == set(names)


def test_a_known_memory_is_not_read_again() -> None:
    store = Store()
    memories = Memories(store, lambda: store.now)
    assert polled(memories, ("good",)) == {"good"}
    store.hanging = frozenset({"a", "b"})
    assert "good" in polled(memories, ("a", "b", "good"))


def test_an_older_memory_stored_concurrently_does_not_replace_a_newer_one() -> None:
    store = Store()
    memories = Memories(store)
    memories.load("good")
    store.on_urgent = lambda: memories.remember("good", SECOND)
    assert memories.store_now("good", WEB)
    assert store.saved[-1] == SECOND


def policy(capacity: float, time: float = 1.7e9, held_until: float | None = None) -> PolicyMemory:
    return PolicyMemory(time=time, capacity=capacity, reconnect=ReconnectMemory(held_until=held_until))


@pytest.mark.parametrize(
    ("own", "is_written"),
    [
        (policy(10.2, 1.7e9 + 10), False),
        (policy(10.6, 1.7e9 + 10), True),
        (policy(10.0, held_until=1.7e9 + 130), True),
        (policy(10.0, held_until=1.7e9 + 5), False),
        (replace(policy(10.0), desired_sizes=((1.7e9, 7),)), False),
        (replace(policy(10.0), uid="another"), True),
        (None, True),
    ],
    ids=["moved-a-little", "moved", "a-hold-begins", "a-hold-is-over", "a-new-size", "another-target", "forgotten"],
)
def test_a_memory_is_written_only_after_significant_changes(own: PolicyMemory | None, *, is_written: bool) -> None:
    store = Store()
    memories = Memories(store)
    memories.load("good")
    now = LastValue(3, 1.7e9 + 10, 1.7e9 + 10)
    memories.remember("good", Memory(now, own=policy(10.0)))
    store.saved.clear()
    memories.remember("good", Memory(now, own=own))
    assert bool(store.saved) == is_written


def test_small_changes_with_each_poll_are_written_once_they_add_up() -> None:
    store = Store()
    memories = Memories(store)
    memories.load("good")
    for step in range(20):
        memories.remember("good", Memory(FIRST.last, own=policy(100.0 - step)))
    assert 2 <= len(store.saved) <= 5
    last = store.saved[-1].own
    assert isinstance(last, PolicyMemory)
    assert abs((last.capacity or 0.0) - 81.0) <= 5.0


def test_a_memory_stored_by_a_former_version_is_rewritten_with_the_next_poll() -> None:
    store = Store(is_current=False)
    memories = Memories(store)
    assert memories.load("good") == FIRST
    memories.remember("good", FIRST)
    memories.remember("good", FIRST)
    assert store.saved == [FIRST]
