"""A recommender in one process: its real loop, configuration, gathering and memory, with sources of the test."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.state import ClusterNode, ClusterState, Observed, Unknown
from adapter.foundation.time.clock import Clock
from recommender.configuration.reading import read_configuration
from recommender.decisions.loads.load_inputs import LoadInput
from recommender.decisions.loads.prediction import PredictedLoad, Prediction
from recommender.outputs.pending_writes import pending_writes_of
from recommender.running.inputs.input_gathering import Gatherer, InputSources, LookUpThreads
from recommender.running.inputs.poll_plan import plan_of
from recommender.running.memory.memories import Memories
from recommender.running.memory.memory_document import decode_memory, encode_memory
from recommender.running.polls.poll_decisions import PollDecisions
from recommender.running.polls.runner import Latest, Runner

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from adapter.foundation.cluster.values.state import Autoscaler
    from recommender.configuration.needs import AskedQuery
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.decisions.inputs import TargetState
    from recommender.decisions.loads.load_inputs import LoadInputs
    from recommender.decisions.loop import Decision
    from recommender.decisions.memory import Memory
    from recommender.decisions.record import Record, TargetReference
    from recommender.running.inputs.input_gathering import TargetInput
    from recommender.running.loads.load_needs import LoadNeed
    from recommender.running.memory.store_protocol import StoredMemory

PROPORTIONAL, PREDICTIVE = "by-nodes", "by-load"
GATE = "gate"


@dataclass(frozen=True)
class Poll:
    """The answers of the sources in one poll."""

    now: float
    """The time of the wall clock, in Unix seconds."""
    nodes: Observed[int] | Unknown
    """The number of nodes."""
    query: Observed[float] | Unknown
    gate: Observed[float] | Unknown
    load: Observed[float] | Unknown
    predicted: float | None
    targets: Mapping[TargetReference, Observed[TargetState | None] | Unknown]
    autoscalers: Mapping[str, Observed[tuple[Autoscaler, ...]] | Unknown]
    starts_anew: bool = False
    """Whether the process has been restarted before this poll."""


@dataclass(frozen=True)
class Outcome:
    """The publication of one poll, and its writes."""

    records: Mapping[str, Record]
    written: Mapping[TargetReference, int]


@dataclass
class Loop:
    """The recommender; each call of `poll` is one poll of its loop."""

    text: str
    _poll: Poll | None = None
    stored: dict[str, str] = field(default_factory=dict)
    _written: dict[TargetReference, int] = field(default_factory=dict)
    _runner: tuple[Runner, Latest] | None = None
    _seconds: float = 0.0

    def poll(self, poll: Poll) -> Outcome:
        self._poll = poll
        self._seconds += 10.0
        self._written.clear()
        if self._runner is None or poll.starts_anew:
            self._runner = self._runner_and_latest()
        runner, latest = self._runner
        runner.poll()
        return Outcome({each.name: each for each in latest.get().records}, dict(self._written))

    def _runner_and_latest(self) -> tuple[Runner, Latest]:
        configuration = read_configuration(self.text, "r.yaml")
        assert not configuration.refused, configuration.refused
        plan, latest, at_once = (
            plan_of(configuration),
            Latest(),
            LookUpThreads(lambda work: work(), lambda work: work()),
        )
        clock = Clock(monotonic=lambda: self._seconds, wall=lambda: self._now.now)
        memories = Memories(self, clock.monotonic)
        sources = InputSources(
            self._cluster, self._query, lambda *_: Observed(None, self._now.now), self._look, self._load
        )
        runner = Runner(
            plan=lambda: plan,
            gatherer=Gatherer(sources, at_once, at_once, clock.monotonic),
            decisions=PollDecisions(memories, clock),
            leadership=self,
            memories=memories,
            effects=self,
            latest=latest,
            clock=clock,
            wake=threading.Event(),
        )
        return runner, latest

    @property
    def _now(self) -> Poll:
        assert self._poll is not None
        return self._poll

    # As sources

    def _cluster(self) -> ClusterState:
        found = self._now.nodes
        if isinstance(found, Unknown):
            return ClusterState(nodes=found, autoscalers=self._now.autoscalers)
        nodes = Observed(_nodes(found.value), found.time, found.began_empty)
        return ClusterState(nodes=nodes, autoscalers=self._now.autoscalers)

    def _query(self, asked: AskedQuery) -> Observed[float] | Unknown:
        return self._now.gate if asked.text == GATE else self._now.query

    def _look(self, wanted: Collection[TargetReference]) -> Mapping[TargetReference, TargetInput]:
        return {each: self._now.targets[each] for each in wanted}

    def _load(self, _need: LoadNeed) -> Observed[LoadInputs] | Unknown:
        load = self._now.load
        if isinstance(load, Unknown):
            return load
        at = None if self._now.predicted is None else self._now.now + 120
        predicted = PredictedLoad(load.value, self._now.predicted, at)
        return Observed({None: Observed(LoadInput(Prediction(predicted, "linear", "")), load.time)}, self._now.now)

    # As leadership

    def is_leader(self) -> bool:
        return True

    def may_write(self, seconds: float) -> bool:
        return seconds >= 0

    def holder(self) -> str:
        return "ours"

    # As memory store

    def load(self, name: str, shard: int | None = None) -> StoredMemory | None:
        assert shard is None
        return decode_memory(name, self.stored[name]) if name in self.stored else None

    def save(self, name: str, memory: Memory, shard: int | None = None, shards: int = 0, *, urgent: bool) -> bool:
        assert (shard, shards) == (None, 0)
        del urgent
        self.stored[name] = encode_memory(name, memory)
        return True

    def needs_load(self, name: str, shard: int | None = None) -> bool:
        assert shard is None
        del name
        return False

    def forget(self, name: str, shard: int | None = None) -> bool:
        del name, shard
        raise AssertionError("no recommendation is removed")

    # As effects

    def act(self, configuration: Configuration, decisions: Sequence[Decision], now: float) -> None:
        until = now + configuration.stale_after_seconds
        for decision in decisions:
            self._written.update({write.target: write.replicas for write in pending_writes_of(decision.record, until)})

    def stand_down(self) -> None:
        raise AssertionError("this process leads all the time")


@cache
def _nodes(count: int) -> tuple[ClusterNode, ...]:
    return tuple(
        ClusterNode(
            f"n{number}",
            {},
            (),
            unschedulable=False,
            conditions={"Ready": "True"},
            created=None,
            capacity={},
            allocatable={},
        )
        for number in range(count)
    )
