"""The memories of objects: in a fixed number of shards, like those of targets, and deleted with the objects."""

from __future__ import annotations

from typing import Final

import pytest

from recommender.configuration.objects.object_settings import OBJECTS_MEMORY, OBJECTS_SHARDS
from recommender.decisions.memory import LastValue, Memory
from recommender.decisions.record import TargetReference
from recommender.running.memory.memories import Memories
from recommender.running.memory.store_protocol import MemoryUnavailableError, ProcessMemoryStore, StoredMemory

WEB: Final = TargetReference("apps/v1", "Deployment", "shop", "web")
API: Final = TargetReference("apps/v1", "Deployment", "shop", "api")


def memory(replicas: int, *targets: TargetReference) -> Memory:
    by_target = {each: memory(replicas) for each in targets}
    return Memory(LastValue(replicas, 1000.0, 1000.0), by_target=by_target)


class Clocked:
    """Memories with a store, and with a clock that advances between polls."""

    def __init__(self, store: ProcessMemoryStore) -> None:
        self.seconds = 0.0
        self.memories = Memories(store, lambda: self.seconds)

    def poll(self, known: set[str] | None, **decided: Memory) -> dict[str, Memory]:
        """Load all objects (`__` stands for `/`), remember the decisions, and return what was loaded."""
        self.seconds += 60.0
        names = [name.replace("__", "/") for name in decided]
        loaded = {name: self.memories.load(name) for name in self.memories.begin(names, 3.0)}
        for name, each in zip(names, decided.values(), strict=True):
            self.memories.remember(name, each)
        self.memories.keep_objects(known)
        return loaded


def stored(store: ProcessMemoryStore) -> set[str]:
    """Return the objects and targets that are stored."""
    shards = [store.load(OBJECTS_MEMORY, number) for number in range(OBJECTS_SHARDS)]
    return {f"{key.namespace}/{key.name}" for shard in shards if shard is not None for key in shard.memory.by_target}


def test_a_new_leader_continues_from_the_remembered_memories() -> None:
    store, one, several = ProcessMemoryStore(), memory(3), memory(4, WEB, API)
    Clocked(store).poll({"shop/a", "shop/b"}, shop__a=one, shop__b=several)
    assert Clocked(store).poll({"shop/a", "shop/b"}, shop__a=one, shop__b=several) == {"shop/a": one, "shop/b": several}


def test_a_deleted_object_is_forgotten_and_a_refused_one_is_not() -> None:
    store = ProcessMemoryStore()
    first = Clocked(store)
    first.poll({"shop/a", "shop/b", "shop/c"}, shop__a=memory(3), shop__b=memory(4, WEB), shop__c=memory(5))
    assert stored(store) == {"shop/a", "shop/b", "shop/b/web", "shop/c"}
    first.poll({"shop/a", "shop/c"}, shop__a=memory(3))
    assert stored(store) == {"shop/a", "shop/c"}


def test_no_memory_is_forgotten_while_the_objects_are_unknown() -> None:
    store = ProcessMemoryStore()
    Clocked(store).poll({"shop/a"}, shop__a=memory(3))
    Clocked(store).poll(None)
    assert stored(store) == {"shop/a"}


def test_the_object_and_its_target_are_stored_before_a_scale_call() -> None:
    store = ProcessMemoryStore()
    first = Clocked(store)
    first.poll({"shop/a"}, shop__a=memory(3, WEB))
    first.memories.begin(["shop/a"], 3.0)
    first.memories.load("shop/a")
    first.memories.remember("shop/a", memory(9, WEB))
    first.memories.keep_objects({"shop/a"})
    assert first.memories.store_now("shop/a", WEB)
    assert not first.memories.store_now("shop/other", WEB)
    assert Clocked(store).poll({"shop/a"}, shop__a=memory(9, WEB))["shop/a"] == memory(9, WEB)


def test_an_unreadable_shard_is_read_once_per_poll() -> None:
    class Unavailable(ProcessMemoryStore):
        reads = 0

        def load(self, name: str, shard: int | None = None) -> StoredMemory | None:
            self.reads += 1
            raise MemoryUnavailableError(f"{name} {shard}")

    store = Unavailable()
    memories = Memories(store)
    memories.begin(["shop/a", "shop/b"], 3.0)
    for name in ("shop/a", "shop/b"):
        with pytest.raises(MemoryUnavailableError):
            memories.load(name)
    memories.keep_objects(set())
    assert store.reads == 1


def test_the_brakes_of_objects_last_as_long_if_the_clock_is_set_forward() -> None:
    store = ProcessMemoryStore()
    clocked, changed = Clocked(store), Memory(LastValue(3, 1000.0, 1000.0), changes=(1000.0,))
    clocked.poll({"shop/a"}, shop__a=changed)
    clocked.memories.prolong(7200.0)
    later = Memory(LastValue(3, 1000.0, 1000.0), changes=(8200.0,))
    assert clocked.poll({"shop/a"}, shop__a=later) == {"shop/a": later}
    assert Clocked(store).poll({"shop/a"}, shop__a=later) == {"shop/a": later}
