"""Cluster size decisions in threads of their own, since a decision for a huge cluster takes seconds.

A poll waits a second for a decision. A slower decision is published by the poll that follows its end; until then, the
last decision is published, with its old time. Other recommendations are polled as usual. The decision is Python
code that other threads interrupt every few milliseconds, so that the Lease is renewed and health checks are answered
meanwhile. After a late decision its thread rests for as long as it has worked, which leaves half of a core to others.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from recommender.decisions.inputs import Inputs
from recommender.decisions.loop import Decision, decide, failed_decision, supervise
from recommender.decisions.policy_settings import Output, RecommendationPolicy
from recommender.decisions.record import Record, Status, TargetReference
from recommender.decisions.texts.times import is_fresh
from recommender.kinds.cluster_size.model.answer import ClusterSizeAnswer, answer_of
from recommender.kinds.cluster_size.model.size_facts import SizeFacts
from recommender.kinds.cluster_size.model.size_settings import cluster_size_settings
from recommender.running.sizes.plugin_hosts import PluginHosts

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from adapter.foundation.cluster.values.state import ClusterState
    from recommender.decisions.calculation import Calculate
    from recommender.decisions.memory import Memory
    from recommender.kinds.cluster_size.node_groups.plugin_reading import PluginReading
    from recommender.kinds.kind import Recommendation
    from recommender.outputs.write_attempt import ScaleOutcome
    from recommender.running.inputs.input_gathering import Submit
    from recommender.running.sizes.reported_writes import WriteResults

WAIT_SECONDS: Final = 1.0
"""How long a poll waits for a decision; a decision for a cluster with some hundred nodes takes less time."""
_SET_SECONDS: Final = 1.0
"""A wall clock that differs from the monotonic one by more than this has been set."""


class SlowDecisions(Protocol):
    """Makes the decisions of slow kinds. Not thread-safe."""

    def decide(
        self, recommendation: Recommendation, calculate: Calculate, inputs: Inputs, memory: Memory, now: float
    ) -> Decision:
        """Return the latest decision; `now` is in Unix seconds."""

    def keep(self, recommendations: Collection[str]) -> None:
        """Drop what belongs to recommendations that are not configured any more."""

    def forget(self) -> None:
        """Drop everything that is under way or was decided: another process leads."""


class ImmediateSizing:
    """Decides in the caller's thread, without waiting for timers, as `recommend` does."""

    def __init__(self) -> None:
        self._plugins = PluginHosts()

    def decide(
        self, recommendation: Recommendation, calculate: Calculate, inputs: Inputs, memory: Memory, now: float
    ) -> Decision:
        """Return the decision."""
        facts = SizeFacts(providers=providers_of(self._plugins, recommendation, inputs.cluster))
        return decide(recommendation.policy, calculate, with_facts(recommendation, inputs, facts), memory, now)

    def keep(self, recommendations: Collection[str]) -> None:
        """Let the plugins of other recommendations release their resources."""
        self._plugins.keep(recommendations)

    def forget(self) -> None:
        """Let the plugins release their resources."""
        self._plugins.close()


def providers_of(
    plugins: PluginHosts, recommendation: Recommendation, cluster: ClusterState
) -> tuple[PluginReading, ...]:
    """Return the current answers of the providers of a recommendation's node groups."""
    policy = recommendation.policy
    settings = cluster_size_settings((recommendation,)).get(policy.name)
    if settings is None:
        return ()
    return plugins.read(policy.name, settings.node_groups, cluster, policy.stale_after_seconds)


def with_facts(recommendation: Recommendation, inputs: Inputs, facts: SizeFacts) -> Inputs:
    """Return the inputs with the facts that are gathered only for one recommendation."""
    return replace(inputs, own={**inputs.own, recommendation.policy.name: facts})


@dataclass(slots=True)
class _Work:
    """One decision in its thread."""

    recommendation: Recommendation
    calculate: Calculate
    memory: Memory
    """The memory that the decision started from: a decision from an older memory is dropped."""
    done: threading.Event
    writes: Mapping[TargetReference, ScaleOutcome]
    """The results of writes that the decision takes into account."""
    sent: Mapping[tuple[str, int], object]
    """What may have been sent before the decision began."""
    began: float
    """When the decision began, in Unix seconds."""
    decision: Decision | None = None
    seconds: float = 0.0


@dataclass(slots=True)
class _State:
    """The state of one recommendation."""

    work: _Work | None = None
    last: Record | None = None
    answer: ClusterSizeAnswer | None = None
    """The last decision that was made from known facts."""
    rests_until: float = 0.0
    again: float | None = None
    """The time for which the last decision requested its repetition, in Unix seconds."""


@dataclass(slots=True, kw_only=True)
class SizesInBackground:
    """Makes cluster size decisions in other threads."""

    submit: Submit
    """Runs work on another thread."""
    plugins: PluginHosts
    wake: Callable[[], None]
    """Makes a poll follow soon."""
    measure: Callable[[str, float], None]
    """Records how long the decision of a recommendation took, from any thread."""
    results: WriteResults
    """The results of writing sizes."""
    writes: bool
    """Whether this process writes sizes."""
    has_lease: bool
    """Whether a Lease decides which process writes sizes."""
    wait_seconds: float = WAIT_SECONDS
    clock: Callable[[], float] = time.monotonic
    _states: dict[str, _State] = field(default_factory=dict)
    _began: float | None = None
    """When this process made its first decision as the leader, in Unix seconds.

    It is stated by the wall clock as that is set now: if that clock is set, the waits that begin here must neither end
    at once nor last for a day.
    """
    _began_monotonic: float = 0.0

    def decide(
        self, recommendation: Recommendation, calculate: Calculate, inputs: Inputs, memory: Memory, now: float
    ) -> Decision:
        """Return the last decision that has ended, and let another one begin."""
        self._note_time(now)
        state = self._states.setdefault(recommendation.policy.name, _State())
        late = self._finished_decision(state, recommendation, memory, now)
        if late is not None:
            return late
        if state.work is None and self.clock() >= state.rests_until:
            self._begin(state, recommendation, calculate, inputs, memory, now)
        if state.work is not None and state.work.done.wait(self.wait_seconds):
            found = self._finished_decision(state, recommendation, memory, now)
            if found is not None:
                state.rests_until = 0.0
                return found
        return Decision(
            _meanwhile(state.last, recommendation.policy, now), memory, decide_again=self._after_rest(state, now)
        )

    def keep(self, recommendations: Collection[str]) -> None:
        """Drop what belongs to other recommendations; their decisions under way end without an effect."""
        self._states = {name: state for name, state in self._states.items() if name in recommendations}
        self.plugins.keep(recommendations)

    def forget(self) -> None:
        """Drop everything; decisions under way end without an effect."""
        self._states = {}
        self._began = None
        self.results.clear()

    def _note_time(self, now: float) -> None:
        passed = self.clock()
        if self._began is None:
            self._began, self._began_monotonic = now, passed
        shown = now - (passed - self._began_monotonic)
        if abs(shown - self._began) > _SET_SECONDS:
            self._began = shown

    def _after_rest(self, state: _State, now: float) -> float | None:
        """Return when a requested repetition may begin; None during a decision, whose end wakes the loop."""
        if state.work is not None or state.again is None:
            return None
        return max(state.again, now + state.rests_until - self.clock())

    def _begin(
        self,
        state: _State,
        recommendation: Recommendation,
        calculate: Calculate,
        inputs: Inputs,
        memory: Memory,
        now: float,
    ) -> None:
        name = recommendation.policy.name
        writes, sent = self.results.of(name), self.results.sent_of(name)
        work = _Work(recommendation, calculate, memory, threading.Event(), writes, sent, now)
        self.submit(partial(self._run, work, inputs, now, state.answer))
        # Only now: if no thread can be started, the next poll has to try again.
        state.work = work

    def _run(self, work: _Work, inputs: Inputs, now: float, answer: ClusterSizeAnswer | None) -> None:
        started, policy = self.clock(), work.recommendation.policy
        try:
            work.decision = supervise(
                policy,
                partial(self._decision, work, inputs, now, answer),
                partial(failed_decision, policy, work.memory, now, Inputs()),
            )
        finally:
            work.seconds = self.clock() - started
            work.done.set()
        self.measure(policy.name, work.seconds)
        if work.seconds > self.wait_seconds:
            self.wake()

    def _decision(self, work: _Work, inputs: Inputs, now: float, answer: ClusterSizeAnswer | None) -> Decision:
        providers = providers_of(self.plugins, work.recommendation, inputs.cluster)
        writes_sizes = self.writes and Output.SCALE in work.recommendation.policy.outputs
        facts = SizeFacts(
            waits=True,
            writes_sizes=writes_sizes,
            has_lease=self.has_lease,
            began=self._began,
            providers=providers,
            writes=work.writes,
            sent=work.sent.keys(),
            last=answer,
        )
        inputs = with_facts(work.recommendation, inputs, facts)
        return decide(work.recommendation.policy, work.calculate, inputs, work.memory, now)

    def _finished_decision(
        self, state: _State, recommendation: Recommendation, memory: Memory, now: float
    ) -> Decision | None:
        """Return the decision that has ended, if it was made for the current recommendation and memory.

        A decision that began long ago is dropped, unless it took that long itself: the machine may have slept since.
        """
        work = state.work
        if work is None or not work.done.is_set():
            return None
        state.work = None
        state.rests_until = self.clock() + work.seconds
        if work.decision is None or work.recommendation != recommendation or work.memory is not memory:
            return None
        if now - work.began - work.seconds > recommendation.policy.stale_after_seconds:
            return None
        record = work.decision.record
        if work.decision.writes is not None:
            self.results.drop(recommendation.policy.name, work.writes, work.sent)
        state.last = record
        state.again = work.decision.decide_again
        if record.status is not Status.STALE and (found := answer_of(record)) is not None:
            state.answer = found
        return work.decision


def _meanwhile(last: Record | None, policy: RecommendationPolicy, now: float) -> Record:
    """Return the record that is published while a decision is under way: the last one, while it is recent enough."""
    if last is None:
        message = "the first decision is under way: a large cluster takes a few seconds"
        return Record(policy.name, policy.type, now, Status.STALE, message)
    if is_fresh(last.time, now, policy.stale_after_seconds):
        return last
    message = f"the decision takes longer than staleAfter, which is {policy.stale_after_seconds:g} s"
    return replace(last, status=Status.STALE, message=message, details=None, steps=(), binding=None)
