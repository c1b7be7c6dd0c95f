"""Cluster size decisions in threads of their own, since one of a huge cluster takes seconds.

A poll waits a second for a decision. One that takes longer is published by the poll that follows its end; until then
the last one is published, with its old time. So other recommendations are polled as always. The decision is Python
code that other threads interrupt every few milliseconds, so that the Lease is renewed and health checks are answered
meanwhile. After a late decision its thread rests for as long as it has worked, which leaves half of a core to others.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from adapter.service.runtime.logs import fields
from recommender.decisions.failures import failed_record
from recommender.decisions.loop import Decision
from recommender.decisions.record import Record, Status
from recommender.decisions.times import is_fresh
from recommender.running.sizing.decide import SizeQuestion, decide_cluster_size
from recommender.running.sizing.plugins import PluginHosts

if TYPE_CHECKING:
    from collections.abc import Callable

    from recommender.cluster_size.model.answer import ClusterSizeAnswer
    from recommender.cluster_size.model.settings import ClusterSizeSettings
    from recommender.decisions.memory import Memory
    from recommender.decisions.settings import RecommendationPolicy
    from recommender.running.gathering import Submit
    from recommender.running.sizing.decide import SizeInputs
    from recommender.running.sizing.plugins import ReadsPlugins

_log = logging.getLogger(__name__)

WAIT_SECONDS: Final = 1.0
"""For so long a poll waits for a decision: that of a cluster with some hundred nodes takes less."""


class SizeDecisions(Protocol):
    """Makes the decisions of cluster sizes. For one thread."""

    def decided(
        self,
        policy: RecommendationPolicy,
        settings: ClusterSizeSettings,
        inputs: SizeInputs,
        memory: Memory,
        now: float,
    ) -> Decision:
        """Return the latest decision; `now` is in seconds since the Unix epoch."""
        ...

    def forget(self) -> None:
        """Drop what is under way and what was decided: another process leads."""
        ...


class SizesAtOnce:
    """Decides in the caller's thread, without waiting for timers, as `recommend` does."""

    def __init__(self) -> None:
        self._plugins = PluginHosts()

    def decided(
        self,
        policy: RecommendationPolicy,
        settings: ClusterSizeSettings,
        inputs: SizeInputs,
        memory: Memory,
        now: float,
    ) -> Decision:
        """Return the decision."""
        plugin = self._plugins.read(policy.name, settings.node_groups, inputs.poll.cluster)
        question = SizeQuestion(policy, settings, waits=False, writes=False)
        return decide_cluster_size(question, replace(inputs, plugin=plugin), memory, now)

    def forget(self) -> None:
        """Let the plugins release what they hold."""
        self._plugins.close()


@dataclass(slots=True)
class _Work:
    """One decision in its thread."""

    question: SizeQuestion
    memory: Memory
    """What it started from: a decision by an older memory is dropped."""
    done: threading.Event
    decision: Decision | None = None
    seconds: float = 0.0


@dataclass(slots=True)
class _State:
    """What is known of one recommendation."""

    work: _Work | None = None
    last: Record | None = None
    answer: ClusterSizeAnswer | None = None
    """The last one that was made from known facts."""
    rests_until: float = 0.0


class SizesInBackground:
    """Decides in other threads."""

    def __init__(
        self,
        submit: Submit,
        plugins: ReadsPlugins,
        wake: Callable[[], None],
        measure: Callable[[str, float], None],
        *,
        writes: bool,
        wait_seconds: float = WAIT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`submit` runs work on another thread; `wake` lets a poll follow soon; `writes` as in `SizeQuestion`.

        `measure` records how long the decision of a recommendation took, from any thread.
        """
        self._submit = submit
        self._plugins = plugins
        self._wake = wake
        self._measure = measure
        self._writes = writes
        self._wait_seconds = wait_seconds
        self._clock = clock
        self._states: dict[str, _State] = {}

    def decided(
        self,
        policy: RecommendationPolicy,
        settings: ClusterSizeSettings,
        inputs: SizeInputs,
        memory: Memory,
        now: float,
    ) -> Decision:
        """Return the decision that has ended now or before, and let another one begin."""
        state = self._states.setdefault(policy.name, _State())
        question = SizeQuestion(policy, settings, waits=True, writes=self._writes)
        late = self._collected(state, question, memory)
        if late is not None:
            return late
        if state.work is None and self._clock() >= state.rests_until:
            self._begin(state, question, inputs, memory, now)
        if state.work is not None and state.work.done.wait(self._wait_seconds):
            found = self._collected(state, question, memory)
            if found is not None:
                state.rests_until = 0.0
                return found
        return Decision(_meanwhile(state.last, policy, now), memory)

    def forget(self) -> None:
        """Drop everything; what is under way ends without an effect."""
        self._states = {}

    def _begin(self, state: _State, question: SizeQuestion, inputs: SizeInputs, memory: Memory, now: float) -> None:
        work = state.work = _Work(question, memory, threading.Event())
        self._submit(partial(self._run, work, inputs, now, state.answer))

    def _run(self, work: _Work, inputs: SizeInputs, now: float, answer: ClusterSizeAnswer | None) -> None:
        started = self._clock()
        policy, settings = work.question.policy, work.question.settings
        try:
            plugin = self._plugins.read(policy.name, settings.node_groups, inputs.poll.cluster)
            found = replace(inputs, plugin=plugin)
            work.decision = decide_cluster_size(work.question, found, work.memory, now, answer)
        except Exception as error:  # noqa: BLE001 - the supervisor: one recommendation must not stop the others
            _log.exception("a decision failed by a fault of the program", extra=fields(recommendation=policy.name))
            message = f"the decision failed by a fault of the program: {type(error).__name__}: {error}"
            work.decision = Decision(failed_record(policy, now, message), work.memory)
        finally:
            work.seconds = self._clock() - started
            work.done.set()
        self._measure(policy.name, work.seconds)
        if work.seconds > self._wait_seconds:
            self._wake()

    def _collected(self, state: _State, question: SizeQuestion, memory: Memory) -> Decision | None:
        """Return the decision that has ended, if it still answers the question."""
        work = state.work
        if work is None or not work.done.is_set():
            return None
        state.work = None
        state.rests_until = self._clock() + work.seconds
        if work.decision is None or work.question != question or work.memory is not memory:
            return None
        state.last = work.decision.record
        if work.decision.record.status is not Status.STALE and work.decision.record.size is not None:
            state.answer = work.decision.record.size
        return work.decision


def _meanwhile(last: Record | None, policy: RecommendationPolicy, now: float) -> Record:
    """Return what is published while a decision is under way: the last one, as long as it is recent enough."""
    if last is None:
        message = "the first decision is under way: a large cluster takes some seconds"
        return Record(policy.name, policy.type, now, Status.STALE, message)
    if is_fresh(last.time, now, policy.stale_after_seconds):
        return last
    message = f"the decision takes longer than staleAfter, which is {policy.stale_after_seconds:g} s"
    return replace(last, status=Status.STALE, message=message, size=None, steps=(), binding=None)
