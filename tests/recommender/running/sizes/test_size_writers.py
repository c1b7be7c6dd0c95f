"""Cluster size decisions write sizes of node groups and CapacityBuffers to an API server in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.objects.resources import UnknownResourceError
from recommender.configuration.recommender_configuration import Configuration, RefusedRecommendation
from recommender.decisions.loop import Decision
from recommender.decisions.memory import Memory
from recommender.decisions.policy_settings import Output, RecommendationPolicy
from recommender.decisions.record import Record, Status
from recommender.kinds.cluster_size.future.capacity_buffers import BufferSize
from recommender.kinds.cluster_size.group_wishes import GroupWishes
from recommender.kinds.cluster_size.model.size_settings import (
    BufferSettings,
    ClusterSizeSettings,
    NodeGroupSources,
    SizeLimits,
)
from recommender.kinds.cluster_size.outcome import SizeWrites
from recommender.kinds.kind import Recommendation
from recommender.outputs.event_rules import event_of_scale_call
from recommender.outputs.scale_results import ScaleResult
from recommender.outputs.wishes import Wish
from recommender.running.effects.leader_effects import ClusterEffects
from recommender.running.sizes.size_writers import SizeWriters
from recommender.running.sizes.withdrawn_buffers import Withdrawals
from tests.recommender.running.sizes.size_world import GROUP, SizeWorld, resolve
from tests.support.apiserver_kinds import CAPACITY_BUFFERS, MACHINE_DEPLOYMENTS

if TYPE_CHECKING:
    from adapter.foundation.objects.resources import Resource

RESERVE = BufferSettings("shop", "reserve")
OTHER = BufferSettings("shop", "other")
BOTH = frozenset({Output.SCALE, Output.CAPACITY_BUFFER})
CHUNK = {"podTemplateRef": {"name": "chunk"}}


def configured(
    buffer: BufferSettings | None = RESERVE, outputs: frozenset[Output] = BOTH, name: str = "nodes"
) -> Configuration:
    settings = ClusterSizeSettings(NodeGroupSources(), buffer=buffer)
    policy = RecommendationPolicy(name, "clusterSize", outputs=outputs)
    return Configuration(recommendations=(Recommendation(policy, settings),))


NOTHING = Configuration()


class World(SizeWorld):
    """A leader's writers, and what they have written."""

    def __init__(self) -> None:
        super().__init__()
        self.store.put(CAPACITY_BUFFERS, "shop", "other", {"kind": "CapacityBuffer", "spec": {**CHUNK, "replicas": 1}})
        self.withdrawals = Withdrawals()
        self.writers = SizeWriters(self.groups, self.buffers, resolve, self.withdrawals)

    def poll(
        self, configuration: Configuration, size: int | None = None, chunks: int | None = None
    ) -> list[ScaleResult]:
        """Carry out a decision, or none, and return the results of the attempts."""
        found = len(self.outcomes)
        self.writers.act(configuration, [self.decision(configuration, size, chunks)], self.now)
        self.step()
        return [outcome.result for outcome in self.outcomes[found:]]

    def decision(self, configuration: Configuration, size: int | None, chunks: int | None) -> Decision:
        record = Record("nodes", "clusterSize", self.now, Status.OK, "")
        if size is None and chunks is None:
            return Decision(record, Memory())
        until = self.now + 60.0
        wishes = GroupWishes(() if size is None else (Wish("nodes", GROUP, size, until, "why", 4),))
        subject = configuration.recommendations[0].subject if configuration.recommendations else None
        buffer = subject.buffer if isinstance(subject, ClusterSizeSettings) else None
        sized = None if buffer is None else BufferSize(buffer, chunks)
        return Decision(record, Memory(), SizeWrites(wishes, sized, until))

    def step(self) -> None:
        found = len(self.outcomes)
        self.groups.step()
        self.buffers.step()
        for outcome in self.outcomes[found:]:
            self.withdrawals.note(outcome)

    def replicas(self, name: str = "reserve") -> Any:  # noqa: ANN401 - as it is in the object
        return self.store.get_without_rights(CAPACITY_BUFFERS, "shop", name)["spec"]["replicas"]


@pytest.fixture
def world() -> World:
    return World()


def test_sizes_and_chunks_are_written_once(world: World) -> None:
    assert world.poll(configured(), 6, 7) == [ScaleResult.OK, ScaleResult.OK]
    assert (world.size, world.replicas()) == (6, 7)
    assert world.poll(configured()) == []


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        (frozenset({Output.METRIC}), (4, 2)),
        (frozenset({Output.SCALE}), (6, 2)),
        (frozenset({Output.CAPACITY_BUFFER}), (4, 7)),
    ],
)
def test_only_sizes_named_by_the_outputs_are_written(
    world: World, outputs: frozenset[Output], expected: tuple[int, int]
) -> None:
    world.poll(configured(outputs=outputs), 6, 7)

    assert (world.size, world.replicas()) == expected


def test_a_process_that_does_not_lead_sends_nothing(world: World) -> None:
    world.permits = False

    assert world.poll(configured(), 6, 7) == [ScaleResult.FENCED, ScaleResult.FENCED]
    assert (world.size, world.replicas(), world.objects.written) == (4, 2, [])


def test_pending_writes_end_with_leadership(world: World) -> None:
    world.permits = False
    world.poll(configured(), 6, 7)
    world.writers.clear()
    world.permits = True
    world.now += 30.0
    world.step()

    assert world.objects.written == []


def test_limits_and_pauses_are_read_at_the_time_of_the_write(world: World) -> None:
    paused = {"cluster.x-k8s.io/paused": "true"}
    world.change(MACHINE_DEPLOYMENTS, "capi", "workers", lambda one: one["metadata"]["annotations"].update(paused))
    assert world.poll(configured(), 6) == [ScaleResult.REFUSED]
    world.change(MACHINE_DEPLOYMENTS, "capi", "workers", lambda one: one["metadata"]["annotations"].pop(*paused))
    assert world.poll(configured(), 11) == [ScaleResult.REFUSED], "the maximum is 10"
    assert world.poll(configured(), 10) == [ScaleResult.OK]


def test_a_buffer_with_an_unknown_number_of_chunks_keeps_its_size(world: World) -> None:
    world.poll(configured(), 6, None)

    assert (world.size, world.replicas()) == (6, 2)


@pytest.mark.parametrize("later", [NOTHING, configured(None, frozenset({Output.METRIC}))])
@pytest.mark.parametrize("is_reloaded_first", [True, False])
def test_a_buffer_that_is_no_longer_sized_gets_its_former_size_back(
    world: World, later: Configuration, *, is_reloaded_first: bool
) -> None:
    world.poll(configured(), 6, 7)
    if is_reloaded_first:
        world.writers.reconfigured(later)

    assert world.poll(later) == [ScaleResult.OK]
    assert (world.replicas(), world.size) == (2, 6)
    event = event_of_scale_call(world.outcomes[-1])
    assert event is not None
    assert event.message == "recommendation nodes: it is no longer sized, so its previous size is restored"
    assert world.poll(later) == [], "it is done"


@pytest.mark.parametrize("name", ["nodes", ""], ids=["named", "unreadable"])
def test_a_buffer_keeps_its_size_while_its_entry_is_refused(world: World, name: str) -> None:
    """A process that starts with a faulty entry has no last good version of the entry."""
    world.buffer(7)
    world.withdrawals.found({RESERVE: "nodes"})
    assert world.poll(Configuration(refused=(RefusedRecommendation(name, ()),))) == []
    assert world.replicas() == 7
    assert world.poll(NOTHING) == [ScaleResult.OK]
    assert world.replicas() == 2


def test_the_first_buffer_gets_its_former_size_back_if_another_is_configured(world: World) -> None:
    world.poll(configured(), chunks=7)
    world.writers.reconfigured(configured(OTHER))

    world.poll(configured(OTHER), chunks=5)

    assert (world.replicas("reserve"), world.replicas("other")) == (2, 5)


def test_a_buffer_that_another_recommendation_sizes_now_keeps_its_size(world: World) -> None:
    world.poll(configured(), chunks=7)

    world.poll(configured(name="others"))

    assert world.replicas() == 7


def test_a_failed_withdrawal_is_repeated_until_it_succeeds(world: World) -> None:
    world.poll(configured(), chunks=7)
    world.permits = False
    assert world.poll(NOTHING) == [ScaleResult.FENCED]
    world.permits = True
    world.now += 30.0

    assert world.poll(NOTHING) == [ScaleResult.OK]
    assert world.replicas() == 2


def test_a_process_that_becomes_leader_after_the_reload_withdraws_too(world: World) -> None:
    world.buffer(7)
    world.writers.reconfigured(configured())
    world.writers.reconfigured(NOTHING)

    assert world.poll(NOTHING) == [ScaleResult.OK]
    assert world.replicas() == 2


def test_nothing_is_withdrawn_when_the_process_ends(world: World) -> None:
    world.poll(configured(), chunks=7)
    world.writers.clear()
    world.now += 30.0
    world.step()

    assert world.replicas() == 7


def test_groups_are_written_in_a_cluster_without_capacity_buffers(world: World) -> None:
    def without(group: str, name: str) -> Resource:
        if name == "CapacityBuffer":
            raise UnknownResourceError("the cluster serves no CapacityBuffer")
        return resolve(group, name)

    writers = SizeWriters(world.groups, world.buffers, without, world.withdrawals)
    writers.act(configured(), [world.decision(configured(), 6, 7)], world.now)
    world.step()

    assert (world.size, world.replicas()) == (6, 2)


class Silent:
    """Accepts results that are not about sizes of node groups."""

    def retain(self, *_: object) -> None: ...

    def decided(self, *_: object) -> None: ...

    def add(self, *_: object) -> None: ...


@pytest.mark.parametrize("is_late", [False, True], ids=["decided-before", "decided-after"])
def test_sizes_decided_by_a_former_entry_are_not_written(world: World, *, is_late: bool) -> None:
    silent = Silent()
    effects = ClusterEffects(silent, silent, silent, world.writers)  # type: ignore[arg-type]
    former = configured()
    entry = former.recommendations[0]
    limited = replace(entry.subject, limits=SizeLimits(max_nodes=5))
    changed = replace(former, recommendations=(replace(entry, subject=limited),))
    if is_late:
        effects.reconfigured(changed)
    effects.act(former, [world.decision(former, 6, 7)], world.now)
    if not is_late:
        effects.reconfigured(changed)
    world.step()
    assert world.objects.written == []
    effects.act(changed, [world.decision(changed, 5, 6)], world.now)
    world.step()
    assert (world.size, world.replicas()) == (5, 6)


def test_a_buffer_gets_its_former_size_back_even_if_the_change_cancels_pending_writes(world: World) -> None:
    silent = Silent()
    effects = ClusterEffects(silent, silent, silent, world.writers)  # type: ignore[arg-type]
    effects.act(configured(), [world.decision(configured(), None, 7)], world.now)
    world.step()
    assert world.replicas() == 7
    effects.reconfigured(NOTHING)
    effects.act(NOTHING, [], world.now)
    world.step()
    assert world.replicas() == 2
