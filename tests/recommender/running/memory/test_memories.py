"""Reading memories takes no more of a poll than its share, and what is stored is the newest."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from recommender.decisions.memory import LastValue, Memory
from recommender.running.memory.memories import Memories
from recommender.running.memory.store import MemoryUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST = Memory(last=LastValue(3, 1.0, 1.0))
SECOND = replace(FIRST, changes=(1.0,))


@dataclass
class Store:
    """A store in which the memories of some recommendations hang for five seconds."""

    hanging: frozenset[str] = frozenset()
    now: float = 0.0
    read: list[str] = field(default_factory=list)
    saved: list[Memory] = field(default_factory=list)
    on_urgent: Callable[[], None] = lambda: None

    def load(self, name: str) -> Memory | None:
        self.read.append(name)
        if name in self.hanging:
            self.now += 5.0
            raise MemoryUnavailableError("no answer")
        return FIRST

    def save(self, name: str, memory: Memory, *, urgent: bool) -> bool:
        del name
        if urgent:
            self.on_urgent()
        self.saved.append(memory)
        return True

    def needs_load(self, name: str) -> bool:
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


def test_memories_that_hang_take_a_limited_part_of_each_poll_and_leave_the_others_their_turn() -> None:
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


def test_a_memory_that_is_known_needs_no_time() -> None:
    store = Store()
    memories = Memories(store, lambda: store.now)
    assert polled(memories, ("good",)) == {"good"}
    store.hanging = frozenset({"a", "b"})
    assert "good" in polled(memories, ("a", "b", "good"))


def test_an_older_memory_that_is_stored_meanwhile_does_not_replace_a_newer_one() -> None:
    store = Store()
    memories = Memories(store)
    memories.load("good")
    store.on_urgent = lambda: memories.remember("good", SECOND)
    assert memories.store_now("good")
    assert store.saved[-1] == SECOND
