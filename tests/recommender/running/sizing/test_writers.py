"""CapacityBuffers get the size of the latest decision, and their former size back when nothing sizes them any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from recommender.cluster_size.model.settings import BufferSettings
from recommender.configuration.reading import read_configuration
from recommender.decisions.memory import Memory
from recommender.decisions.record import Record, Status
from recommender.running.sizing.outcome import BufferSize, SizeDecision
from recommender.running.sizing.writers import RETURN_SECONDS, SizeWriters
from tests.recommender.configuration.files import entry, whole
from tests.recommender.outputs.sizes.size_world import SizeWorld, resolve
from tests.support.apiserver_objects import CAPACITY_BUFFERS

if TYPE_CHECKING:
    from recommender.configuration.model import Configuration

SIZED = "clusterSize: {nodeGroups: [{name: a, max: 5, selector: {pool: a}}]}"
WITH = ("outputs: [capacityBuffer]", "capacityBuffer: {namespace: shop, name: reserve}")
OTHER = ("outputs: [capacityBuffer]", "capacityBuffer: {namespace: shop, name: other}")


def configuration(*lines: str) -> Configuration:
    found = read_configuration(whole(entry("nodes", *lines, kind=SIZED)), "r.yaml")
    assert not found.refused
    return found


class Buffers:
    """The writers before the API server of a `SizeWorld`, where the buffer has 2 chunks of its own."""

    def __init__(self) -> None:
        self.world = SizeWorld()
        self.world.store.put(CAPACITY_BUFFERS, "shop", "other", {"kind": "CapacityBuffer", "spec": {"replicas": 3}})
        self.writers = SizeWriters(self.world.groups, self.world.buffers, resolve, lambda: self.world.now)

    def decide(self, replicas: int | None, *lines: str) -> None:
        target = BufferSettings("shop", "other" if lines == OTHER else "reserve")
        record = Record("nodes", "clusterSize", self.world.now, Status.OK, "")
        buffer = BufferSize(target, replicas)
        decision = SizeDecision(record, Memory(), buffer=buffer, valid_until=self.world.now + 60.0)
        self.writers.act(configuration(*lines), [decision])
        self.step()

    def step(self) -> None:
        self.world.buffers.step()

    def size(self, name: str = "reserve") -> int:
        found = self.world.store.get_without_rights(CAPACITY_BUFFERS, "shop", name)["spec"]["replicas"]
        assert isinstance(found, int)
        return found


@pytest.fixture
def buffers() -> Buffers:
    return Buffers()


def test_the_former_size_comes_back_when_the_output_goes(buffers: Buffers) -> None:
    buffers.decide(5, *WITH)
    assert buffers.size() == 5
    buffers.writers.reconfigured(configuration("outputs: [metric]"))
    buffers.step()
    assert buffers.size() == 2


def test_a_buffer_that_is_replaced_by_another_gets_its_former_size_back(buffers: Buffers) -> None:
    buffers.decide(5, *WITH)
    buffers.decide(6, *OTHER)
    assert (buffers.size(), buffers.size("other")) == (2, 6)


def test_a_buffer_that_is_sized_again_keeps_the_new_size(buffers: Buffers) -> None:
    buffers.decide(5, *WITH)
    buffers.writers.reconfigured(configuration("outputs: [metric]"))
    buffers.decide(6, *WITH)
    buffers.step()
    assert buffers.size() == 6


def test_a_size_that_is_not_known_for_the_moment_leaves_the_buffer_as_it_is(buffers: Buffers) -> None:
    buffers.decide(5, *WITH)
    buffers.decide(None, *WITH)
    assert buffers.size() == 5


def test_a_process_that_no_longer_leads_puts_nothing_back(buffers: Buffers) -> None:
    buffers.decide(5, *WITH)
    buffers.writers.clear()
    buffers.writers.reconfigured(configuration("outputs: [metric]"))
    buffers.step()
    assert buffers.size() == 5


def test_a_return_that_does_not_succeed_in_time_is_given_up(buffers: Buffers) -> None:
    buffers.decide(5, *WITH)
    buffers.world.permits = False
    buffers.writers.reconfigured(configuration("outputs: [metric]"))
    buffers.step()
    buffers.world.now += RETURN_SECONDS + 1.0
    buffers.world.permits = True
    buffers.writers.reconfigured(configuration("outputs: [metric]"))
    buffers.step()
    assert buffers.size() == 5
