"""Memories are stored in ConfigMaps: when they are written, and who may write them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapter.foundation.sources.kubernetes.writing import Fence
from recommender.running.memory.config_map_store import ConfigMapMemoryStore
from recommender.running.memory.store_protocol import StoredMemory, stored_name
from tests.recommender.running.memory.config_map_world import FIRST, SECOND, THIRD, World
from tests.support.apiserver_kinds import CONFIG_MAPS
from tests.support.apiserver_objects import Direct


def test_a_new_leader_continues_from_the_memory_that_the_last_one_stored() -> None:
    world = World()
    first, second = world.process(), world.process()
    assert first.load("web") is None
    assert first.save("web", FIRST, urgent=True)
    assert second.load("web") == StoredMemory(FIRST)
    found = world.objects.find(CONFIG_MAPS, "monitoring", "tidewatch-recommender-web")
    assert found is not None
    assert found["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "tidewatch-recommender"


def test_memories_that_are_not_urgent_are_written_at_most_once_in_ten_seconds() -> None:
    world = World()
    store = world.process()
    store.load("web")
    versions: set[str | None] = set()
    for second in range(100):
        world.now = float(second)
        assert store.save("web", replace(FIRST, changes=tuple(map(float, range(second)))), urgent=False)
        store.flush()
        versions.add(world.content())
    assert len(versions) == 10
    assert world.writes == 10


def test_at_most_five_memories_are_written_per_second() -> None:
    world = World()
    store = world.process()
    names = [f"web-{number}" for number in range(20)]
    for name in names:
        store.load(name)
        store.save(name, FIRST, urgent=False)
    written = []
    for second in range(5):
        world.now = float(second)
        store.flush()
        written.append(world.writes)
    assert written == [5, 10, 15, 20, 20]
    assert all(world.content(name) for name in names)


def test_an_urgent_write_is_not_limited() -> None:
    world = World()
    store = world.process()
    names = [f"web-{number}" for number in range(20)]
    for name in names:
        store.load(name)
        assert store.save(name, FIRST, urgent=True)
        assert store.save(name, SECOND, urgent=True)
    assert world.writes == 40


def test_equal_content_is_not_written_again() -> None:
    world = World()
    store = world.process()
    store.load("web")
    assert store.save("web", FIRST, urgent=True)
    assert store.save("web", FIRST, urgent=True)
    world.now = 100.0
    store.flush()
    again = world.process()
    again.load("web")
    assert again.save("web", FIRST, urgent=True)
    assert world.writes == 1


@pytest.mark.parametrize("exists", [False, True])
def test_a_fenced_process_writes_nothing(*, exists: bool) -> None:
    world = World()
    if exists:
        leader = world.process()
        leader.load("web")
        leader.save("web", FIRST, urgent=True)
    before = world.content()
    store = world.process(permits=False)
    store.load("web")
    assert not store.save("web", SECOND, urgent=True)
    assert world.content() == before
    assert world.results[-1] == "fenced"


def test_a_memory_is_not_saved_before_it_was_loaded() -> None:
    world = World()
    store = world.process()
    assert store.needs_load("web")
    assert not store.save("web", FIRST, urgent=True)
    store.load("web")
    assert not store.needs_load("web")
    assert store.save("web", FIRST, urgent=True)


@pytest.mark.parametrize("exists", [False, True])
def test_the_state_of_a_newer_leader_is_never_overwritten(*, exists: bool) -> None:
    world = World()
    if exists:
        leader = world.process()
        leader.load("web")
        leader.save("web", FIRST, urgent=True)
    old, new = world.process(), world.process()
    old.load("web")
    new.load("web")
    assert new.save("web", SECOND, urgent=True)
    assert not old.save("web", THIRD, urgent=True)
    assert world.stored() == SECOND
    assert old.needs_load("web")
    assert not old.save("web", THIRD, urgent=True), "until it is loaded"
    assert old.load("web") == StoredMemory(SECOND)
    assert old.save("web", THIRD, urgent=True)
    assert world.stored() == THIRD


def test_a_changed_label_is_kept_and_does_not_block_a_write() -> None:
    world = World()
    store = world.process()
    store.load("web")
    store.save("web", FIRST, urgent=True)
    world.objects.change(
        CONFIG_MAPS, "monitoring", stored_name("web"), lambda one: one["metadata"]["labels"].update(team="a")
    )
    assert store.save("web", SECOND, urgent=True)
    found = world.objects.find(CONFIG_MAPS, "monitoring", stored_name("web"))
    assert found is not None
    assert found["metadata"]["labels"]["team"] == "a"
    assert world.stored() == SECOND


def test_a_deleted_config_map_is_written_again() -> None:
    world = World()
    store = world.process()
    store.load("web")
    store.save("web", FIRST, urgent=True)
    world.objects.remove(CONFIG_MAPS, "monitoring", stored_name("web"))
    assert store.save("web", SECOND, urgent=True)
    assert world.stored() == SECOND


def test_a_config_map_of_another_owner_is_left_unchanged(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    theirs = {"kind": "ConfigMap", "data": {"settings": "mine"}}
    world.objects.put(CONFIG_MAPS, "monitoring", stored_name("web"), theirs)
    store = world.process()
    assert store.load("web") is None
    assert not store.save("web", FIRST, urgent=True)
    assert not store.save("web", FIRST, urgent=True)
    found = world.objects.find(CONFIG_MAPS, "monitoring", stored_name("web"))
    assert found is not None
    assert found["data"] == {"settings": "mine"}
    assert caplog.text.count("delete it or rename the recommendation") == 1
    world.objects.remove(CONFIG_MAPS, "monitoring", stored_name("web"))
    assert store.save("web", FIRST, urgent=True)


def test_a_former_leader_writes_nothing_and_loads_what_the_next_leader_stored() -> None:
    world = World()
    leads = True
    old = ConfigMapMemoryStore(
        Direct(world.objects, world._before), "monitoring", Fence(2.0, lambda _: leads), count=world.results.append
    )
    old.load("web")
    old.save("web", SECOND, urgent=False)
    leads = False
    old.flush()
    assert world.writes == 0
    assert world.results == []
    new = world.process()
    new.load("web")
    new.save("web", FIRST, urgent=True)
    leads = True
    old.flush()
    assert world.stored() == FIRST
    assert old.needs_load("web")
    assert old.load("web") == StoredMemory(FIRST)
