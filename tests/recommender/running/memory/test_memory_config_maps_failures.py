"""Memories in ConfigMaps while writes and reads fail, hang or are refused."""

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

from adapter.foundation.sources.kubernetes.errors import DeadlineError, UnknownOutcomeError
from adapter.foundation.sources.kubernetes.writing import Fence
from adapter.foundation.time.clock import Clock
from recommender.running.memory.config_map_store import ConfigMapMemoryStore
from recommender.running.memory.store_protocol import MemoryUnavailableError, stored_name
from tests.recommender.running.memory.config_map_harness import FIRST, SECOND, THIRD, Harness, Losing
from tests.support.apiserver_kinds import CONFIG_MAPS
from tests.support.apiserver_objects import Direct

if TYPE_CHECKING:
    from recommender.decisions.memory import Memory


def test_a_write_with_unknown_outcome_is_followed_by_a_read() -> None:
    harness = Harness()
    client = Losing(harness.objects, harness._before)
    store = ConfigMapMemoryStore(client, "monitoring", Fence(2.0, lambda _: True))
    store.load("web")
    store.save("web", FIRST, urgent=True)
    client.lose_next = True
    assert not store.save("web", SECOND, urgent=True)
    harness.calls.clear()
    assert store.save("web", THIRD, urgent=True)
    assert harness.calls == ["GET", "PUT"]
    assert harness.stored() == THIRD


def test_an_unavailable_server_is_not_treated_as_an_empty_memory() -> None:
    harness = Harness()
    store = harness.process()
    harness.fail_before["GET"] = DeadlineError("no answer")
    with pytest.raises(MemoryUnavailableError, match="no answer"):
        store.load("web")
    assert store.needs_load("web")


def test_missing_rights_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    harness = Harness()
    store = harness.process()
    for name in ("web", "dns"):
        store.load(name)
    for verb in ("create", "get"):
        harness.objects.deny(verb, "configmaps")
        for name in ("web", "dns"):
            assert not store.save(name, FIRST, urgent=True)
    with pytest.raises(
        MemoryUnavailableError, match="allow get, create and update of ConfigMaps named tidewatch-recommender-NAME;"
    ):
        store.load("web")
    assert len([one for one in caplog.records if one.levelno == logging.ERROR]) == 1
    harness.objects.denied.clear()
    assert store.save("web", FIRST, urgent=True)
    assert store.save("dns", FIRST, urgent=True)
    assert caplog.records[-1].getMessage() == "memories can be read and written again"


def test_one_failing_memory_among_others_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    harness = Harness()
    client = Direct(harness.objects, lambda _method, path: harness.refuse(path))
    store = ConfigMapMemoryStore(client, "monitoring", Fence(2.0, lambda _: True))
    for name in ("web", "dns"):
        store.load(name)
    harness.refused = stored_name("dns")
    for number in range(5):
        memory = replace(FIRST, changes=(float(number),))
        with suppress(MemoryUnavailableError):
            store.load("dns")
        assert store.save("web", memory, urgent=True)
    assert len(caplog.records) == 1
    harness.refused = ""
    store.load("dns")
    assert "again" in caplog.records[-1].getMessage()
    assert len(caplog.records) == 2


def test_invalid_content_is_logged_and_replaced(caplog: pytest.LogCaptureFixture) -> None:
    harness = Harness()
    first = harness.process()
    first.load("web")
    first.save("web", FIRST, urgent=True)
    harness.objects.change(
        CONFIG_MAPS, "monitoring", stored_name("web"), lambda one: one.update(data={"memory.json": "by hand"})
    )
    store = harness.process()
    assert store.load("web") is None
    (logged,) = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert "by hand" in str(logged.__dict__["fields"])
    assert store.save("web", SECOND, urgent=True)
    assert harness.stored() == SECOND


class Chaos:
    """A leader whose calls fail at random and whose memories change all the time."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.failing_ratio = 0.2
        self.harness = Harness()
        self.written: list[tuple[float, str]] = []
        """The time and the path of each write."""
        self.wanted: dict[str, Memory] = {}
        objects = Direct(self.harness.objects, self.before)
        self.store = ConfigMapMemoryStore(
            objects, "monitoring", Fence(2.0, lambda _: True), clock=Clock(lambda: self.harness.now)
        )
        self.names = [f"web-{number}" for number in range(self.chance.randrange(1, 12))]

    def before(self, method: str, path: str) -> None:
        if method != "GET":
            self.written.append((self.harness.now, path))
        if self.chance.random() < self.failing_ratio:
            raise self.chance.choice([DeadlineError("not sent"), UnknownOutcomeError("no answer")])

    def step(self) -> None:
        self.harness.now += self.chance.choice([0.1, 0.5, 3.0])
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
def test_random_saves_and_failures_respect_the_limits_and_lose_nothing(seed: int) -> None:
    chaos = Chaos(seed)
    for _ in range(120):
        chaos.step()
    chaos.failing_ratio = 0.0
    for _ in range(10):
        chaos.harness.now += 10.0
        chaos.store.flush()
    assert {name: chaos.harness.stored(name) for name in chaos.wanted} == chaos.wanted
    for name in chaos.names:
        times = [time for time, path in chaos.written if path.endswith(f"/{stored_name(name)}")]
        assert all(later - earlier >= 10.0 - 1e-9 for earlier, later in itertools.pairwise(times))
    for start, _ in chaos.written:
        assert sum(start <= time < start + 1.0 for time, _ in chaos.written) <= 10, "five a second, and a burst of five"


def test_a_decision_does_not_wait_for_a_write_that_hangs() -> None:
    harness = Harness()
    accepted: list[bool] = []

    def decide_meanwhile(method: str, _path: str) -> None:
        if method != "GET" and not accepted:
            deciding = threading.Thread(
                target=lambda: accepted.append(store.save("web", SECOND, urgent=False)), daemon=True
            )
            deciding.start()
            deciding.join(5)

    store = ConfigMapMemoryStore(Losing(harness.objects, decide_meanwhile), "monitoring", Fence(2.0, lambda _: True))
    store.load("web")
    assert store.save("web", FIRST, urgent=True)
    assert accepted == [True], "while the write was under way"
