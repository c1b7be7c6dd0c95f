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
from recommender.kinds.cluster_size.group_writes import GroupWrites
from recommender.kinds.cluster_size.model.size_settings import (
    BufferSettings,
    ClusterSizeSettings,
    NodeGroupSources,
    SizeLimits,
)
from recommender.kinds.cluster_size.outcome import SizeWrites
from recommender.kinds.kind import Recommendation
from recommender.outputs.event_rules import event_of_scale_call
from recommender.outputs.pending_writes import PendingWrite
from recommender.outputs.scale_results import ScaleResult
from recommender.running.effects.leader_effects import ClusterEffects
from recommender.running.sizes.size_writers import SizeWriters
from recommender.running.sizes.withdrawn_buffers import Withdrawals
from tests.recommender.running.sizes.provider_harness import GROUP as OF_PROVIDER
from tests.recommender.running.sizes.provider_harness import ProviderHarness
from tests.recommender.running.sizes.size_harness import GROUP, SizeHarness, resolve
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


class Harness(SizeHarness):
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
        writes = GroupWrites(() if size is None else (PendingWrite("nodes", GROUP, size, until, "why", 4),))
        subject = configuration.recommendations[0].subject if configuration.recommendations else None
        buffer = subject.buffer if isinstance(subject, ClusterSizeSettings) else None
        sized = None if buffer is None else BufferSize(buffer, chunks)
        return Decision(record, Memory(), SizeWrites(writes, sized, until))

    def step(self) -> None:
        found = len(self.outcomes)
        self.groups.step()
        self.buffers.step()
        for outcome in self.outcomes[found:]:
            self.withdrawals.note(outcome)

    def replicas(self, name: str = "reserve") -> Any:  # noqa: ANN401 - as it is in the object
        return self.store.get_without_rights(CAPACITY_BUFFERS, "shop", name)["spec"]["replicas"]


@pytest.fixture
def harness() -> Harness:
    return Harness()


def test_objects_and_groups_of_providers_have_writers_of_their_own(harness: Harness) -> None:
    provider = ProviderHarness(now=harness.now)
    writers = SizeWriters(harness.groups, harness.buffers, resolve, harness.withdrawals, provider.writer)
    record, until = Record("nodes", "clusterSize", harness.now, Status.OK, ""), harness.now + 60.0
    writes = (PendingWrite("nodes", GROUP, 6, until, "", 4), PendingWrite("nodes", OF_PROVIDER, 4, until, "", 2))
    writers.act(configured(None), [Decision(record, Memory(), SizeWrites(GroupWrites(writes), None, until))], 0.0)
    harness.step()
    provider.writer.step()
    assert [outcome.result for outcome in (*harness.outcomes, *provider.outcomes)] == [ScaleResult.OK, ScaleResult.OK]
    assert (harness.size, provider.group.changes) == (6, [("increase", 2)])


def test_sizes_and_chunks_are_written_once(harness: Harness) -> None:
    assert harness.poll(configured(), 6, 7) == [ScaleResult.OK, ScaleResult.OK]
    assert (harness.size, harness.replicas()) == (6, 7)
    assert harness.poll(configured()) == []


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        (frozenset({Output.METRIC}), (4, 2)),
        (frozenset({Output.SCALE}), (6, 2)),
        (frozenset({Output.CAPACITY_BUFFER}), (4, 7)),
    ],
)
def test_only_sizes_named_by_the_outputs_are_written(
    harness: Harness, outputs: frozenset[Output], expected: tuple[int, int]
) -> None:
    harness.poll(configured(outputs=outputs), 6, 7)

    assert (harness.size, harness.replicas()) == expected


def test_a_process_that_does_not_lead_sends_nothing(harness: Harness) -> None:
    harness.permits = False

    assert harness.poll(configured(), 6, 7) == [ScaleResult.FENCED, ScaleResult.FENCED]
    assert (harness.size, harness.replicas(), harness.objects.written) == (4, 2, [])


def test_pending_writes_end_with_leadership(harness: Harness) -> None:
    harness.permits = False
    harness.poll(configured(), 6, 7)
    harness.writers.clear()
    harness.permits = True
    harness.now += 30.0
    harness.step()

    assert harness.objects.written == []


def test_limits_and_pauses_are_read_at_the_time_of_the_write(harness: Harness) -> None:
    paused = {"cluster.x-k8s.io/paused": "true"}
    harness.change(MACHINE_DEPLOYMENTS, "capi", "workers", lambda one: one["metadata"]["annotations"].update(paused))
    assert harness.poll(configured(), 6) == [ScaleResult.REFUSED]
    harness.change(MACHINE_DEPLOYMENTS, "capi", "workers", lambda one: one["metadata"]["annotations"].pop(*paused))
    assert harness.poll(configured(), 11) == [ScaleResult.REFUSED], "the maximum is 10"
    assert harness.poll(configured(), 10) == [ScaleResult.OK]


def test_a_buffer_with_an_unknown_number_of_chunks_keeps_its_size(harness: Harness) -> None:
    harness.poll(configured(), 6, None)

    assert (harness.size, harness.replicas()) == (6, 2)


@pytest.mark.parametrize("later", [NOTHING, configured(None, frozenset({Output.METRIC}))])
@pytest.mark.parametrize("is_reloaded_first", [True, False])
def test_a_buffer_that_is_no_longer_sized_gets_its_former_size_back(
    harness: Harness, later: Configuration, *, is_reloaded_first: bool
) -> None:
    harness.poll(configured(), 6, 7)
    if is_reloaded_first:
        harness.writers.reconfigured(later)

    assert harness.poll(later) == [ScaleResult.OK]
    assert (harness.replicas(), harness.size) == (2, 6)
    event = event_of_scale_call(harness.outcomes[-1])
    assert event is not None
    assert event.message == "recommendation nodes: it is no longer sized, so its previous size is restored"
    assert harness.poll(later) == [], "it is done"


@pytest.mark.parametrize("name", ["nodes", ""], ids=["named", "unreadable"])
def test_a_buffer_keeps_its_size_while_its_entry_is_refused(harness: Harness, name: str) -> None:
    """A process that starts with a faulty entry has no last good version of the entry."""
    harness.buffer(7)
    harness.withdrawals.add({RESERVE: "nodes"})
    assert harness.poll(Configuration(refused=(RefusedRecommendation(name, ()),))) == []
    assert harness.replicas() == 7
    assert harness.poll(NOTHING) == [ScaleResult.OK]
    assert harness.replicas() == 2


def test_the_first_buffer_gets_its_former_size_back_if_another_is_configured(harness: Harness) -> None:
    harness.poll(configured(), chunks=7)
    harness.writers.reconfigured(configured(OTHER))

    harness.poll(configured(OTHER), chunks=5)

    assert (harness.replicas("reserve"), harness.replicas("other")) == (2, 5)


def test_a_buffer_that_another_recommendation_sizes_now_keeps_its_size(harness: Harness) -> None:
    harness.poll(configured(), chunks=7)

    harness.poll(configured(name="others"))

    assert harness.replicas() == 7


def test_a_failed_withdrawal_is_repeated_until_it_succeeds(harness: Harness) -> None:
    harness.poll(configured(), chunks=7)
    harness.permits = False
    assert harness.poll(NOTHING) == [ScaleResult.FENCED]
    harness.permits = True
    harness.now += 30.0

    assert harness.poll(NOTHING) == [ScaleResult.OK]
    assert harness.replicas() == 2


def test_a_process_that_becomes_leader_after_the_reload_withdraws_too(harness: Harness) -> None:
    harness.buffer(7)
    harness.writers.reconfigured(configured())
    harness.writers.reconfigured(NOTHING)

    assert harness.poll(NOTHING) == [ScaleResult.OK]
    assert harness.replicas() == 2


def test_nothing_is_withdrawn_when_the_process_ends(harness: Harness) -> None:
    harness.poll(configured(), chunks=7)
    harness.writers.clear()
    harness.now += 30.0
    harness.step()

    assert harness.replicas() == 7


def test_groups_are_written_in_a_cluster_without_capacity_buffers(harness: Harness) -> None:
    def without(group: str, name: str) -> Resource:
        if name == "CapacityBuffer":
            raise UnknownResourceError("the cluster serves no CapacityBuffer")
        return resolve(group, name)

    writers = SizeWriters(harness.groups, harness.buffers, without, harness.withdrawals)
    writers.act(configured(), [harness.decision(configured(), 6, 7)], harness.now)
    harness.step()

    assert (harness.size, harness.replicas()) == (6, 2)


class Silent:
    """Accepts results that are not about sizes of node groups."""

    def retain(self, *_: object) -> None: ...

    def follow_decision(self, *_: object) -> None: ...

    def add(self, *_: object) -> None: ...


@pytest.mark.parametrize("is_late", [False, True], ids=["decided-before", "decided-after"])
def test_sizes_decided_by_a_former_entry_are_not_written(harness: Harness, *, is_late: bool) -> None:
    silent = Silent()
    effects = ClusterEffects(silent, silent, silent.add, harness.writers)  # type: ignore[arg-type]
    former = configured()
    entry = former.recommendations[0]
    limited = replace(entry.subject, limits=SizeLimits(max_nodes=5))
    changed = replace(former, recommendations=(replace(entry, subject=limited),))
    if is_late:
        effects.reconfigured(changed)
    effects.act(former, [harness.decision(former, 6, 7)], harness.now)
    if not is_late:
        effects.reconfigured(changed)
    harness.step()
    assert harness.objects.written == []
    effects.act(changed, [harness.decision(changed, 5, 6)], harness.now)
    harness.step()
    assert (harness.size, harness.replicas()) == (5, 6)


def test_a_buffer_gets_its_former_size_back_even_if_the_change_cancels_pending_writes(harness: Harness) -> None:
    silent = Silent()
    effects = ClusterEffects(silent, silent, silent.add, harness.writers)  # type: ignore[arg-type]
    effects.act(configured(), [harness.decision(configured(), None, 7)], harness.now)
    harness.step()
    assert harness.replicas() == 7
    effects.reconfigured(NOTHING)
    effects.act(NOTHING, [], harness.now)
    harness.step()
    assert harness.replicas() == 2
