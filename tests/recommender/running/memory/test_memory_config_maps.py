from __future__ import annotations

import itertools
import logging
import random
import threading
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.sources.kubernetes.errors import DeadlineError, KubernetesError, UnknownOutcomeError
from adapter.foundation.sources.kubernetes.writing import Fence
from adapter.foundation.time.clock import Clock
from recommender.decisions.memory import LastValue, Memory
from recommender.kinds.proportional.memory import ProportionalMemory
from recommender.running.memory.config_maps import ConfigMapMemoryStore
from recommender.running.memory.store import MemoryUnavailableError, StoredMemory, stored_name
from tests.support.apiserver_objects import CONFIG_MAPS, Direct, ObjectStore

if TYPE_CHECKING:
    from collections.abc import Mapping

FIRST = Memory(last=LastValue(3, 1.0, 2.0), own=ProportionalMemory(rungs={"nodes": 3}))
SECOND = replace(FIRST, changes=(1.0,))
THIRD = replace(FIRST, changes=(1.0, 2.0))


class World:
    """An API server, and any number of processes that store memories there."""

    def __init__(self) -> None:
        self.now = 0.0
        self.objects = ObjectStore()
        self.calls: list[str] = []
        self.results: list[str] = []
        self.fail_before: dict[str, KubernetesError] = {}
        self.refused = ""

    def process(self, *, permits: bool = True) -> ConfigMapMemoryStore:
        return ConfigMapMemoryStore(
            _Losing(self.objects, self._before),
            "monitoring",
            Fence(2.0, lambda _: permits),
            count=self.results.append,
            clock=Clock(lambda: self.now),
        )

    def refuse(self, path: str) -> None:
        if self.refused and path.endswith(self.refused):
            raise DeadlineError("no answer")

    def _before(self, method: str, _path: str) -> None:
        self.calls.append(method)
        error = self.fail_before.pop(method, None)
        if error is not None:
            raise error

    @property
    def writes(self) -> int:
        return sum(method != "GET" for method in self.calls)

    def content(self, name: str = "web") -> str | None:
        found = self.objects.find(CONFIG_MAPS, "monitoring", stored_name(name))
        return None if found is None else found["data"]["memory.json"]

    def stored(self, name: str = "web") -> Memory | None:
        found = self.process().load(name)
        return None if found is None else found.memory


class _Losing(Direct):
    """Loses the answer to a write after it is done, if the test says so."""

    lose_next = False

    def replace(self, path: str, document: Mapping[str, object], fence: Fence) -> dict[str, object]:
        after = super().replace(path, document, fence)
        if self.lose_next:
            self.lose_next = False
            raise UnknownOutcomeError("PUT: sent, but no answer")
        return after


def test_the_next_leader_goes_on_from_what_the_last_one_stored() -> None:
    world = World()
    first, second = world.process(), world.process()
    assert first.load("web") is None
    assert first.save("web", FIRST, urgent=True)
    assert second.load("web") == StoredMemory(FIRST)
    found = world.objects.find(CONFIG_MAPS, "monitoring", "tidewatch-recommender-web")
    assert found is not None
    assert found["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "tidewatch-recommender"


def test_what_is_not_urgent_is_written_at_most_once_in_ten_seconds() -> None:
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


def test_all_together_are_written_at_most_five_times_a_second() -> None:
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


def test_an_urgent_write_waits_for_no_limit() -> None:
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
def test_who_may_not_write_writes_nothing(*, exists: bool) -> None:
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


def test_nothing_is_saved_before_it_was_loaded() -> None:
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


def test_a_change_of_something_else_than_the_content_is_no_obstacle() -> None:
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


def test_what_was_deleted_is_written_again() -> None:
    world = World()
    store = world.process()
    store.load("web")
    store.save("web", FIRST, urgent=True)
    world.objects.remove(CONFIG_MAPS, "monitoring", stored_name("web"))
    assert store.save("web", SECOND, urgent=True)
    assert world.stored() == SECOND


def test_a_write_with_unknown_outcome_is_followed_by_a_read() -> None:
    world = World()
    client = _Losing(world.objects, world._before)
    store = ConfigMapMemoryStore(client, "monitoring", Fence(2.0, lambda _: True))
    store.load("web")
    store.save("web", FIRST, urgent=True)
    client.lose_next = True
    assert not store.save("web", SECOND, urgent=True)
    world.calls.clear()
    assert store.save("web", THIRD, urgent=True)
    assert world.calls == ["GET", "PUT"]
    assert world.stored() == THIRD


def test_a_server_that_is_away_is_not_taken_for_an_empty_memory() -> None:
    world = World()
    store = world.process()
    world.fail_before["GET"] = DeadlineError("no answer")
    with pytest.raises(MemoryUnavailableError, match="no answer"):
        store.load("web")
    assert store.needs_load("web")


def test_missing_rights_are_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    world = World()
    store = world.process()
    for name in ("web", "dns"):
        store.load(name)
    for verb in ("create", "get"):
        world.objects.deny(verb, "configmaps")
        for name in ("web", "dns"):
            assert not store.save(name, FIRST, urgent=True)
    with pytest.raises(MemoryUnavailableError, match="allow get, create and update of ConfigMaps"):
        store.load("web")
    assert len([one for one in caplog.records if one.levelno == logging.ERROR]) == 1
    world.objects.denied.clear()
    assert store.save("web", FIRST, urgent=True)
    assert store.save("dns", FIRST, urgent=True)
    assert caplog.records[-1].getMessage() == "memories can be read and written again"


def test_one_memory_that_fails_among_others_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    world = World()
    client = Direct(world.objects, lambda _method, path: world.refuse(path))
    store = ConfigMapMemoryStore(client, "monitoring", Fence(2.0, lambda _: True))
    for name in ("web", "dns"):
        store.load(name)
    world.refused = stored_name("dns")
    for number in range(5):
        memory = replace(FIRST, changes=(float(number),))
        with suppress(MemoryUnavailableError):
            store.load("dns")
        assert store.save("web", memory, urgent=True)
    assert len(caplog.records) == 1
    world.refused = ""
    store.load("dns")
    assert "again" in caplog.records[-1].getMessage()
    assert len(caplog.records) == 2


def test_broken_content_is_kept_in_the_log_and_replaced(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    first = world.process()
    first.load("web")
    first.save("web", FIRST, urgent=True)
    world.objects.change(
        CONFIG_MAPS, "monitoring", stored_name("web"), lambda one: one.update(data={"memory.json": "by hand"})
    )
    store = world.process()
    assert store.load("web") is None
    (said,) = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert "by hand" in str(said.__dict__["fields"])
    assert store.save("web", SECOND, urgent=True)
    assert world.stored() == SECOND


def test_the_config_map_of_somebody_else_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
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


def test_who_leads_no_more_writes_nothing_and_loads_what_the_next_leader_has_stored() -> None:
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


class Chaos:
    """A leader whose calls fail at random and whose memories change all the time."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.failing_ratio = 0.2
        self.world = World()
        self.written: list[tuple[float, str]] = []
        """When, and at which path."""
        self.wanted: dict[str, Memory] = {}
        objects = Direct(self.world.objects, self.before)
        self.store = ConfigMapMemoryStore(
            objects, "monitoring", Fence(2.0, lambda _: True), clock=Clock(lambda: self.world.now)
        )
        self.names = [f"web-{number}" for number in range(self.chance.randrange(1, 12))]

    def before(self, method: str, path: str) -> None:
        if method != "GET":
            self.written.append((self.world.now, path))
        if self.chance.random() < self.failing_ratio:
            raise self.chance.choice([DeadlineError("not sent"), UnknownOutcomeError("no answer")])

    def step(self) -> None:
        self.world.now += self.chance.choice([0.1, 0.5, 3.0])
        for name in self.names:
            if self.store.needs_load(name):
                with suppress(MemoryUnavailableError):
                    self.store.load(name)
            memory = replace(FIRST, changes=(self.chance.random(),))
            if self.chance.random() < 0.3 and self.store.save(name, memory, urgent=False):
                self.wanted[name] = memory
        self.store.flush()


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_random_saves_and_failures_keep_the_limits_and_lose_nothing(seed: int) -> None:
    chaos = Chaos(seed)
    for _ in range(120):
        chaos.step()
    chaos.failing_ratio = 0.0
    for _ in range(10):
        chaos.world.now += 10.0
        chaos.store.flush()
    assert {name: chaos.world.stored(name) for name in chaos.wanted} == chaos.wanted
    for name in chaos.names:
        times = [time for time, path in chaos.written if path.endswith(f"/{stored_name(name)}")]
        assert all(later - earlier >= 10.0 - 1e-9 for earlier, later in itertools.pairwise(times))
    for start, _ in chaos.written:
        assert sum(start <= time < start + 1.0 for time, _ in chaos.written) <= 10, "five a second, and a burst of five"


def test_a_decision_does_not_wait_for_a_write_that_hangs() -> None:
    world = World()
    accepted: list[bool] = []

    def decide_meanwhile(method: str, _path: str) -> None:
        if method != "GET" and not accepted:
            deciding = threading.Thread(
                target=lambda: accepted.append(store.save("web", SECOND, urgent=False)), daemon=True
            )
            deciding.start()
            deciding.join(5)

    store = ConfigMapMemoryStore(_Losing(world.objects, decide_meanwhile), "monitoring", Fence(2.0, lambda _: True))
    store.load("web")
    assert store.save("web", FIRST, urgent=True)
    assert accepted == [True], "while the write was under way"
