"""Memories are stored in ConfigMaps: when they are written, and who may write them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapter.foundation.sources.kubernetes.writing import Fence
from recommender.running.memory.config_map_store import ConfigMapMemoryStore
from recommender.running.memory.store_protocol import StoredMemory, stored_name
from tests.recommender.running.memory.config_map_harness import FIRST, SECOND, THIRD, Harness
from tests.support.apiserver_kinds import CONFIG_MAPS
from tests.support.apiserver_objects import Direct


def test_a_new_leader_continues_from_the_memory_that_the_last_one_stored() -> None:
    harness = Harness()
    first, second = harness.process(), harness.process()
    assert first.load("web") is None
    assert first.save("web", FIRST, urgent=True)
    assert second.load("web") == StoredMemory(FIRST)
    found = harness.objects.find(CONFIG_MAPS, "monitoring", "tidewatch-recommender-web")
    assert found is not None
    assert found["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "tidewatch-recommender"


def test_memories_that_are_not_urgent_are_written_at_most_once_in_ten_seconds() -> None:
    harness = Harness()
    store = harness.process()
    store.load("web")
    versions: set[str | None] = set()
    for second in range(100):
        harness.now = float(second)
        assert store.save("web", replace(FIRST, changes=tuple(map(float, range(second)))), urgent=False)
        store.flush()
        versions.add(harness.content())
    assert len(versions) == 10
    assert harness.writes == 10


def test_at_most_five_memories_are_written_per_second() -> None:
    harness = Harness()
    store = harness.process()
    names = [f"web-{number}" for number in range(20)]
    for name in names:
        store.load(name)
        store.save(name, FIRST, urgent=False)
    written = []
    for second in range(5):
        harness.now = float(second)
        store.flush()
        written.append(harness.writes)
    assert written == [5, 10, 15, 20, 20]
    assert all(harness.content(name) for name in names)


def test_an_urgent_write_is_not_limited() -> None:
    harness = Harness()
    store = harness.process()
    names = [f"web-{number}" for number in range(20)]
    for name in names:
        store.load(name)
        assert store.save(name, FIRST, urgent=True)
        assert store.save(name, SECOND, urgent=True)
    assert harness.writes == 40


def test_equal_content_is_not_written_again() -> None:
    harness = Harness()
    store = harness.process()
    store.load("web")
    assert store.save("web", FIRST, urgent=True)
    assert store.save("web", FIRST, urgent=True)
    harness.now = 100.0
    store.flush()
    again = harness.process()
    again.load("web")
    assert again.save("web", FIRST, urgent=True)
    assert harness.writes == 1


@pytest.mark.parametrize("exists", [False, True])
def test_a_fenced_process_writes_nothing(*, exists: bool) -> None:
    harness = Harness()
    if exists:
        leader = harness.process()
        leader.load("web")
        leader.save("web", FIRST, urgent=True)
    before = harness.content()
    store = harness.process(permits=False)
    store.load("web")
    assert not store.save("web", SECOND, urgent=True)
    assert harness.content() == before
    assert harness.results[-1] == "fenced"


def test_a_memory_is_not_saved_before_it_was_loaded() -> None:
    harness = Harness()
    store = harness.process()
    assert store.needs_load("web")
    assert not store.save("web", FIRST, urgent=True)
    store.load("web")
    assert not store.needs_load("web")
    assert store.save("web", FIRST, urgent=True)


@pytest.mark.parametrize("exists", [False, True])
def test_the_state_of_a_newer_leader_is_never_overwritten(*, exists: bool) -> None:
    harness = Harness()
    if exists:
        leader = harness.process()
        leader.load("web")
        leader.save("web", FIRST, urgent=True)
    old, new = harness.process(), harness.process()
    old.load("web")
    new.load("web")
    assert new.save("web", SECOND, urgent=True)
    assert not old.save("web", THIRD, urgent=True)
    assert harness.stored() == SECOND
    assert old.needs_load("web")
    assert not old.save("web", THIRD, urgent=True), "until it is loaded"
    assert old.load("web") == StoredMemory(SECOND)
    assert old.save("web", THIRD, urgent=True)
    assert harness.stored() == THIRD


def test_a_changed_label_is_kept_and_does_not_block_a_write() -> None:
    harness = Harness()
    store = harness.process()
    store.load("web")
    store.save("web", FIRST, urgent=True)
    harness.objects.change(
        CONFIG_MAPS, "monitoring", stored_name("web"), lambda one: one["metadata"]["labels"].update(team="a")
    )
    assert store.save("web", SECOND, urgent=True)
    found = harness.objects.find(CONFIG_MAPS, "monitoring", stored_name("web"))
    assert found is not None
    assert found["metadata"]["labels"]["team"] == "a"
    assert harness.stored() == SECOND


def test_a_deleted_config_map_is_written_again() -> None:
    harness = Harness()
    store = harness.process()
    store.load("web")
    store.save("web", FIRST, urgent=True)
    harness.objects.remove(CONFIG_MAPS, "monitoring", stored_name("web"))
    assert store.save("web", SECOND, urgent=True)
    assert harness.stored() == SECOND


def test_a_config_map_of_another_owner_is_left_unchanged(caplog: pytest.LogCaptureFixture) -> None:
    harness = Harness()
    theirs = {"kind": "ConfigMap", "data": {"settings": "mine"}}
    harness.objects.put(CONFIG_MAPS, "monitoring", stored_name("web"), theirs)
    store = harness.process()
    assert store.load("web") is None
    assert not store.save("web", FIRST, urgent=True)
    assert not store.save("web", FIRST, urgent=True)
    found = harness.objects.find(CONFIG_MAPS, "monitoring", stored_name("web"))
    assert found is not None
    assert found["data"] == {"settings": "mine"}
    assert caplog.text.count("delete it or rename the recommendation") == 1
    harness.objects.remove(CONFIG_MAPS, "monitoring", stored_name("web"))
    assert store.save("web", FIRST, urgent=True)


def test_a_former_leader_writes_nothing_and_loads_what_the_next_leader_stored() -> None:
    harness = Harness()
    leads = True
    old = ConfigMapMemoryStore(
        Direct(harness.objects, harness._before),
        "monitoring",
        Fence(2.0, lambda _: leads),
        count=harness.results.append,
    )
    old.load("web")
    old.save("web", SECOND, urgent=False)
    leads = False
    old.flush()
    assert harness.writes == 0
    assert harness.results == []
    new = harness.process()
    new.load("web")
    new.save("web", FIRST, urgent=True)
    leads = True
    old.flush()
    assert harness.stored() == FIRST
    assert old.needs_load("web")
    assert old.load("web") == StoredMemory(FIRST)


def test_a_memory_that_was_never_loaded_can_be_forgotten_and_one_with_a_write_to_come_cannot() -> None:
    harness = Harness()
    store = harness.process()
    assert store.forget("web")
    store.load("web")
    assert store.forget("web")
    store.load("web")
    store.save("web", FIRST, urgent=True)
    store.save("web", SECOND, urgent=False)
    assert not store.forget("web")
    harness.now = 60.0
    store.flush()
    assert store.forget("web")
