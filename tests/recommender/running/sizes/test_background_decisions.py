"""Cluster size decisions in another thread: what a poll publishes before, during and after one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.values.state import Observed
from recommender.decisions.calculation import Calculation, InputMissingError
from recommender.decisions.inputs import Inputs
from recommender.decisions.memory import Memory
from recommender.decisions.record import Status, TargetReference
from recommender.kinds.cluster_size.decide import Sizing
from recommender.kinds.cluster_size.model.answer import answer_of
from recommender.kinds.cluster_size.model.memory import restore_memory
from recommender.kinds.cluster_size.model.size_facts import SizeFacts
from recommender.kinds.cluster_size.scale_up.pending_pods import SETTLING_SECONDS
from recommender.kinds.kind import Recommendation
from recommender.outputs.pending_writes import PendingWrite
from recommender.outputs.scale_results import ScaleResult
from recommender.outputs.write_attempt import ScaleOutcome
from recommender.running.sizes.background_decisions import SizesInBackground
from recommender.running.sizes.plugin_hosts import PluginHosts
from recommender.running.sizes.reported_writes import WriteResults
from tests.recommender.kinds.cluster_size.builders import pod
from tests.recommender.kinds.cluster_size.test_decide import NOW, POLICY, SETTINGS, cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings

MEMORY = Memory()


class NoPlugins(PluginHosts):
    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Collection[str]] = []

    def keep(self, recommendations: Collection[str]) -> None:
        self.kept.append(recommendations)


class Harness:
    """Work that runs when the test says so, and a clock that the test moves."""

    def __init__(self) -> None:
        self.work: list[Callable[[], None]] = []
        self.now = 0.0
        self.woken = 0
        self.is_working = False
        self.at_once = False
        self.seconds = 0.0
        """The time of a decision: each reading of the clock during it adds so much."""
        self.measured: list[tuple[str, float]] = []
        self.results = WriteResults()
        self.plugins = NoPlugins()
        self.has_threads = True
        self.sizes = SizesInBackground(
            submit=self.submit,
            plugins=self.plugins,
            wake=self.wake,
            measure=lambda *duration: self.measured.append(duration),
            results=self.results,
            writes=False,
            has_lease=True,
            wait_seconds=0.0,
            clock=self.clock,
        )

    def submit(self, work: Callable[[], None]) -> None:
        if not self.has_threads:
            raise RuntimeError("can't start new thread")
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
        """Return the status, the recommended size, and the memory after a poll."""
        recommendation = Recommendation(POLICY, settings)
        calculate = Sizing(POLICY, settings).calculate
        found = self.sizes.decide(recommendation, calculate, Inputs(cluster(at, pending=pending)), memory or MEMORY, at)
        size = answer_of(found.record)
        return found.record.status, size.groups[0].recommended if size else None, found.memory


@pytest.fixture
def harness() -> Harness:
    return Harness()


def test_a_fast_decision_is_published_by_its_own_poll(harness: Harness) -> None:
    harness.at_once = True

    assert [harness.poll(pending)[:2] for pending in (2, 3)] == [(Status.OK, 5), (Status.OK, 6)]


def test_there_is_no_value_while_the_first_decision_is_in_progress(harness: Harness) -> None:
    assert harness.poll()[:2] == (Status.STALE, None)
    assert len(harness.work) == 1
    assert harness.poll()[:2] == (Status.STALE, None)
    assert len(harness.work) == 1


def test_a_late_decision_is_published_by_the_next_poll_with_its_memory(harness: Harness) -> None:
    harness.poll()
    harness.finish()

    status, size, memory = harness.poll(pending=7)

    assert (status, size) == (Status.OK, 5)
    assert restore_memory(memory.own).sizes == {"a": 5}


def test_the_last_decision_is_published_until_it_is_too_old_while_another_is_in_progress(harness: Harness) -> None:
    harness.at_once = True
    memory = harness.poll()[2]
    harness.at_once = False

    assert harness.poll(3, NOW + 10, memory)[:2] == (Status.OK, 5)
    assert harness.poll(3, NOW + 70, memory)[:2] == (Status.STALE, None)


@pytest.mark.parametrize("changed", ["settings", "memory"])
def test_a_decision_for_other_settings_or_another_memory_is_dropped(harness: Harness, changed: str) -> None:
    harness.poll()
    harness.finish()
    settings = replace(SETTINGS, max_nodes_per_scale_up=1) if changed == "settings" else SETTINGS

    memory = Memory(changes=(1.0,)) if changed == "memory" else None

    assert harness.poll(settings=settings, memory=memory)[0] is Status.STALE


@pytest.mark.parametrize(("seconds", "later", "status"), [(5.0, 7200.0, Status.STALE), (300.0, 310.0, Status.OK)])
def test_a_decision_that_waited_too_long_for_its_poll_is_dropped(
    harness: Harness, seconds: float, later: float, status: Status
) -> None:
    """The machine slept meanwhile, or the decision itself took so long."""
    harness.poll()
    harness.seconds = seconds
    harness.finish()

    assert harness.poll(at=NOW + later)[0] is status


def test_a_late_decision_of_a_removed_recommendation_is_dropped(harness: Harness) -> None:
    harness.poll()
    harness.finish()
    harness.sizes.keep(())

    assert harness.poll()[0] is Status.STALE
    assert harness.plugins.kept == [()]


def test_a_decision_is_retried_if_its_thread_cannot_be_started(harness: Harness) -> None:
    harness.has_threads = False
    with pytest.raises(RuntimeError):
        harness.poll()
    harness.has_threads = harness.at_once = True

    assert harness.poll()[:2] == (Status.OK, 5)


def test_no_decision_of_a_former_leadership_is_published(harness: Harness) -> None:
    harness.poll()
    harness.finish()
    harness.sizes.forget()

    assert harness.poll()[:2] == (Status.STALE, None)


def test_after_a_long_decision_a_poll_is_requested_and_the_thread_rests_for_the_same_time(harness: Harness) -> None:
    harness.poll()
    harness.seconds = 5.0
    harness.finish()
    memory = harness.poll()[2]

    harness.now += 4.0
    harness.poll(memory=memory)
    assert (harness.woken, len(harness.work)) == (1, 0)
    harness.now += 1.0
    harness.poll(memory=memory)
    assert len(harness.work) == 1


def young_pods(created: float) -> Inputs:
    """Return the inputs with pods that were created at that time."""
    state = cluster(NOW, running=3)
    assert isinstance(state.pods, Observed)
    new = pod("new", "4", "1Gi", namespace="shop", controller="web", created=created)
    return Inputs(replace(state, pods=Observed((*state.pods.value, new), NOW)))


def test_a_decision_is_requested_once_a_pod_counts_but_not_while_the_thread_rests(
    harness: Harness,
) -> None:
    counts = NOW + 1.5
    inputs, memory = young_pods(counts - SETTLING_SECONDS), MEMORY
    recommendation, calculate = Recommendation(POLICY, SETTINGS), Sizing(POLICY, SETTINGS).calculate

    def again(now: float) -> float | None:
        nonlocal memory
        found = harness.sizes.decide(recommendation, calculate, inputs, memory, now)
        memory = found.memory
        return found.decide_again

    assert again(NOW) is None, "the end of the decision lets a poll follow"
    harness.seconds = 5.0
    harness.finish()
    assert again(NOW + 5) == counts
    assert again(NOW + 6) == NOW + 6 + 5
    assert harness.work == []
    harness.now += 5.0
    assert again(NOW + 11) is None
    harness.finish()
    assert again(NOW + 16) is None, "the pod counts"


@pytest.mark.parametrize("step", [-86_400.0, -0.5, 600.0])
def test_a_clock_that_is_set_does_not_change_for_how_long_this_process_has_decided(
    harness: Harness, step: float
) -> None:
    """Requests of former processes are waited for, and failed machines are not deleted at once."""
    passed: list[float] = []

    def calculate(inputs: Inputs, _memory: Memory, now: float) -> Calculation:
        facts = inputs.own[POLICY.name]
        assert isinstance(facts, SizeFacts)
        assert facts.began is not None
        assert facts.has_lease
        passed.append(now - facts.began)
        raise InputMissingError("nothing more is needed")

    def decided(at: float) -> None:
        harness.sizes.decide(Recommendation(POLICY, SETTINGS), calculate, Inputs(cluster(at)), MEMORY, at)

    harness.at_once = True
    decided(NOW)
    harness.now += 30.0
    decided(NOW + step + 30.0)
    harness.now += 30.0
    decided(NOW + step + 60.0)
    assert passed == pytest.approx([0.0, 30.0, 60.0], abs=1.0)


def test_the_duration_of_a_decision_is_measured_however_long_polls_wait_for_it(harness: Harness) -> None:
    harness.seconds = 7.0
    harness.poll()
    assert harness.measured == []
    harness.finish()
    harness.poll()
    assert harness.measured == [(POLICY.name, 7.0)]


def test_results_of_writes_are_kept_until_a_decision_that_considers_them_is_published(harness: Harness) -> None:
    target = TargetReference("cluster.x-k8s.io/v1beta2", "MachineDeployment", "capi", "a")
    harness.results.note(ScaleOutcome(PendingWrite(POLICY.name, target, 5, NOW), ScaleResult.ERROR))
    harness.poll()
    harness.finish()

    other = Memory(changes=(1.0,))
    harness.poll(memory=other)
    assert harness.results.of(POLICY.name), "the decision was dropped, since its memory was another one"
    harness.finish()
    harness.poll(memory=other)
    assert not harness.results.of(POLICY.name)


def test_results_of_writes_are_forgotten_when_leadership_is_lost(harness: Harness) -> None:
    target = TargetReference("cluster.x-k8s.io/v1beta2", "MachineDeployment", "capi", "a")
    harness.results.note(ScaleOutcome(PendingWrite(POLICY.name, target, 5, NOW), ScaleResult.ERROR))
    harness.sizes.forget()

    assert not harness.results.of(POLICY.name)
