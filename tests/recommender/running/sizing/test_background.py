"""Cluster size decisions in another thread: what a poll publishes before, meanwhile and afterwards."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from recommender.decisions.inputs import Inputs
from recommender.decisions.memory import Memory
from recommender.decisions.record import Status
from recommender.running.sizing.background import SizesInBackground
from recommender.running.sizing.decide import SizeInputs
from tests.recommender.running.sizing.test_decide import NOW, POLICY, SETTINGS, cluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from recommender.cluster_size.model.settings import ClusterSizeSettings

MEMORY = Memory()


class NoPlugins:
    def read(self, *_: object) -> None:
        """Return None."""


class World:
    """Work that is done when the test says so, and a clock that moves likewise."""

    def __init__(self) -> None:
        self.work: list[Callable[[], None]] = []
        self.now = 0.0
        self.woken = 0
        self.is_working = False
        self.at_once = False
        self.seconds = 0.0
        """How long a decision takes: each look at the clock while it is made."""
        self.measured: list[tuple[str, float]] = []
        self.sizes = SizesInBackground(
            self.submit,
            NoPlugins(),
            self.wake,
            lambda *duration: self.measured.append(duration),
            writes=False,
            wait_seconds=0.0,
            clock=self.clock,
        )

    def submit(self, work: Callable[[], None]) -> None:
        self.work.append(work)
        if self.at_once:
            self.finish()

    def wake(self) -> None:
        self.woken += 1

    def clock(self) -> float:
        if self.is_working:
            self.now += self.seconds
        return self.now

    def finish(self) -> None:
        self.is_working = True
        self.work.pop(0)()
        self.is_working = False

    def poll(
        self, pending: int = 2, at: float = NOW, memory: Memory | None = None, settings: ClusterSizeSettings = SETTINGS
    ) -> tuple[Status, int | None, Memory]:
        """Return the status, the recommended size, and the memory."""
        inputs = SizeInputs(Inputs(cluster(at, pending=pending)))
        found = self.sizes.decided(POLICY, settings, inputs, memory or MEMORY, at)
        size = found.record.size
        return found.record.status, size.groups[0].recommended if size else None, found.memory


@pytest.fixture
def world() -> World:
    return World()


def test_a_decision_that_is_fast_is_published_by_its_own_poll(world: World) -> None:
    world.at_once = True

    assert [world.poll(pending)[:2] for pending in (2, 3)] == [(Status.OK, 5), (Status.OK, 6)]


def test_while_the_first_decision_is_under_way_there_is_no_value(world: World) -> None:
    assert world.poll()[:2] == (Status.STALE, None)
    assert len(world.work) == 1
    assert world.poll()[:2] == (Status.STALE, None)
    assert len(world.work) == 1


def test_a_late_decision_is_published_by_the_next_poll_with_its_memory(world: World) -> None:
    world.poll()
    world.finish()

    status, size, memory = world.poll(pending=7)

    assert (status, size) == (Status.OK, 5)
    assert memory.cluster_size is not None
    assert memory.cluster_size.sizes == {"a": 5}


def test_meanwhile_the_last_decision_is_published_until_it_is_too_old(world: World) -> None:
    world.at_once = True
    memory = world.poll()[2]
    world.at_once = False

    assert world.poll(3, NOW + 10, memory)[:2] == (Status.OK, 5)
    assert world.poll(3, NOW + 70, memory)[:2] == (Status.STALE, None)


@pytest.mark.parametrize("changed", ["settings", "memory"])
def test_a_decision_of_another_question_or_memory_is_dropped(world: World, changed: str) -> None:
    world.poll()
    world.finish()
    settings = replace(SETTINGS, max_nodes_per_scale_up=1) if changed == "settings" else SETTINGS

    memory = Memory(changes=(1.0,)) if changed == "memory" else None

    assert world.poll(settings=settings, memory=memory)[0] is Status.STALE


def test_nothing_of_a_former_leadership_is_published(world: World) -> None:
    world.poll()
    world.finish()
    world.sizes.forget()

    assert world.poll()[:2] == (Status.STALE, None)


def test_after_a_long_decision_the_thread_rests_as_long_and_a_poll_is_asked_for(world: World) -> None:
    world.poll()
    world.seconds = 5.0
    world.finish()
    memory = world.poll()[2]

    world.now += 4.0
    world.poll(memory=memory)
    assert (world.woken, len(world.work)) == (1, 0)
    world.now += 1.0
    world.poll(memory=memory)
    assert len(world.work) == 1


def test_the_duration_of_a_decision_is_measured_however_long_polls_wait_for_it(world: World) -> None:
    world.seconds = 7.0
    world.poll()
    assert world.measured == []
    world.finish()
    world.poll()
    assert world.measured == [(POLICY.name, 7.0)]
