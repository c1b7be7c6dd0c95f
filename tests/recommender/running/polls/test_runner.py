"""The loop decides each recommendation by itself, and acts only while this process leads."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.state import ClusterState, Observed, Unknown
from adapter.foundation.time.clock import Clock
from recommender.configuration.recommender_configuration import Configuration, RefusedRecommendation
from recommender.decisions.calculation import Calculation, InputMissingError
from recommender.decisions.expansion import EachTarget
from recommender.decisions.inputs import TargetState
from recommender.decisions.loads.load_inputs import LoadInput
from recommender.decisions.loads.prediction import PredictedLoad, Prediction
from recommender.decisions.memory import LastValue, Memory
from recommender.decisions.policy_settings import Output, RecommendationPolicy
from recommender.decisions.record import Status, Step, TargetReference
from recommender.decisions.replicas import Replicas
from recommender.decisions.target_outcomes import NOT_LOOKED_UP
from recommender.kinds.kind import Recommendation
from recommender.kinds.proportional.parameters import ProportionalSettings
from recommender.running.inputs.input_gathering import Gatherer, InputSources, LookUps, LookUpThreads
from recommender.running.inputs.poll_plan import plan_of
from recommender.running.memory.memories import Memories
from recommender.running.memory.store_protocol import MemoryUnavailableError, StoredMemory
from recommender.running.polls.poll_decisions import PollDecisions
from recommender.running.polls.runner import Latest, Runner

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    import pytest

    from recommender.decisions.calculation import Calculate
    from recommender.decisions.inputs import Inputs
    from recommender.decisions.loads.load_inputs import LoadInputs
    from recommender.decisions.loop import Decision
    from recommender.running.inputs.input_gathering import TargetInput
    from recommender.running.inputs.poll_plan import PollPlan

NOW = 1_000_000.0


def always(replicas: int) -> Calculate:
    return lambda _inputs, memory, now: Calculation(Replicas(replicas), now, memory.own)


def while_known(target: TargetReference | None) -> Calculate:
    """Return a calculation of 3 replicas for a target of `chat` whose load is known."""

    def calculate(inputs: Inputs, memory: Memory, now: float) -> Calculation:
        loads = inputs.loads["chat"]
        found = loads if isinstance(loads, Unknown) else loads[target]
        if isinstance(found, Unknown):
            raise InputMissingError(found.reason)
        return Calculation(Replicas(3), now, memory.own)

    return calculate


def noted(note: str, nodes: int) -> Calculate:
    """Return a calculation of 3 replicas whose explanation changes with the number of nodes."""
    step = Step("linear/nodes", 3, f"ceil({nodes} / 16)")
    return lambda _inputs, memory, now: Calculation(
        Replicas(3), now, memory.own, steps=(step,), binding=step.step, note=note
    )


def lacking(reason: str) -> Calculate:
    def calculate(_inputs: Inputs, _memory: Memory, _now: float) -> Calculation:
        raise InputMissingError(reason)

    return calculate


def unforeseen(_inputs: Inputs, _memory: Memory, _now: float) -> Calculation:
    raise ZeroDivisionError("one by nothing")


def _always(calculate: Calculate, _target: TargetReference | None) -> Calculate:
    return calculate


@dataclass
class Harness:
    """Everything that the loop interacts with."""

    calculate: dict[str, Calculate]
    leads: bool = True
    memories: dict[str, Memory] = field(default_factory=dict)
    unavailable: set[str] = field(default_factory=set)
    saved: list[tuple[str, Memory]] = field(default_factory=list)
    acted: list[dict[str, int | None]] = field(default_factory=list)
    stood_down: int = 0
    forgotten: list[float] = field(default_factory=list)
    reported: list[int] = field(default_factory=list)
    on_gather: Callable[[], None] = lambda: None
    now: float = NOW
    for_each: dict[str, EachTarget] = field(default_factory=dict)
    loads: dict[str, LoadInputs | Unknown] = field(default_factory=dict)
    outputs: frozenset[Output] = frozenset({Output.METRIC})
    targets: tuple[TargetReference, ...] = ()
    sizes: dict[TargetReference, int] = field(default_factory=dict)

    # As leadership

    def is_leader(self) -> bool:
        return self.leads

    def may_write(self, seconds: float) -> bool:
        return self.leads and seconds >= 0

    def holder(self) -> str:
        return "ours" if self.leads else "theirs"

    # As memory store

    def load(self, name: str, shard: int | None = None) -> StoredMemory | None:
        if name in self.unavailable:
            raise MemoryUnavailableError(f"the memory of {name} cannot be read")
        found = self.memories.get(name)
        if shard is not None:
            return StoredMemory(found or Memory(), shards=1)
        return None if found is None else StoredMemory(found)

    def save(self, name: str, memory: Memory, shard: int | None = None, shards: int = 0, *, urgent: bool) -> bool:
        del shard, shards, urgent
        self.saved.append((name, memory))
        return True

    def needs_load(self, name: str, shard: int | None = None) -> bool:
        del shard
        return name in self.unavailable

    def forget(self, name: str, shard: int | None = None) -> bool:
        del name, shard
        return True

    # As effects

    def act(self, configuration: Configuration, decisions: Sequence[Decision], now: float) -> None:
        del configuration, now
        self.acted.append({each.record.name: each.record.replicas for each in decisions})

    def stand_down(self) -> None:
        self.stood_down += 1

    # As telemetry

    def plan(self) -> PollPlan:
        recommendations = tuple(
            Recommendation(
                RecommendationPolicy(
                    name, "proportional", () if name in self.for_each else self.targets, outputs=self.outputs
                ),
                ProportionalSettings(),
            )
            for name in self.calculate
        )
        configuration = Configuration(recommendations=recommendations, refused=(RefusedRecommendation("refused", ()),))
        return replace(
            plan_of(configuration),
            look_ups=LookUps(),
            calculations={name: partial(_always, one) for name, one in self.calculate.items()},
            for_each=self.for_each,
        )

    def runner(self) -> tuple[Runner, Latest]:
        def cluster() -> ClusterState:
            self.on_gather()
            return ClusterState()

        def targets(wanted: Collection[TargetReference]) -> dict[TargetReference, TargetInput]:
            return {each: Observed(TargetState(self.sizes[each]), self.now) for each in wanted if each in self.sizes}

        nothing = InputSources(cluster, lambda _: None, lambda *_: None, targets)  # type: ignore[arg-type, return-value]
        latest, at_once = Latest(), LookUpThreads(lambda work: work(), lambda work: work())
        memories, clock = Memories(self), Clock(wall=lambda: self.now)
        runner = Runner(
            plan=self.plan,
            gatherer=_WithLoads(
                Gatherer(nothing, at_once, at_once), self.loads, lambda: self.forgotten.append(self.now)
            ),  # type: ignore[arg-type]
            leadership=self,
            decisions=PollDecisions(memories, clock),
            memories=memories,
            effects=self,
            latest=latest,
            clock=clock,
            wake=threading.Event(),
            report_poll=lambda records: self.reported.append(len(records)),
        )
        return runner, latest


@dataclass
class _WithLoads:
    """A gatherer that also knows loads."""

    gatherer: Gatherer
    loads: dict[str, LoadInputs | Unknown]
    forget: Callable[[], None]

    def gather(self, wanted: LookUps, seconds: float) -> Inputs:
        return replace(self.gatherer.gather(wanted, seconds), loads=self.loads)


def known_load() -> Observed[LoadInput]:
    return Observed(LoadInput(Prediction(PredictedLoad(3.0, 3.0, NOW), "headroom", "")), NOW)


def statuses(latest: Latest) -> dict[str, Status]:
    return {record.name: record.status for record in latest.get().records}


def test_a_recommendation_that_fails_does_not_affect_others() -> None:
    harness = Harness({"bad": unforeseen, "good": always(3)})
    runner, latest = harness.runner()
    runner.poll()

    assert statuses(latest) == {"bad": Status.ERROR, "good": Status.OK, "refused": Status.ERROR}
    assert harness.acted == [{"bad": None, "good": 3}]


def test_a_follower_decides_nothing_and_names_the_leader() -> None:
    harness = Harness({"good": always(3)}, leads=False)
    runner, latest = harness.runner()
    runner.poll()

    assert latest.get().records == ()
    assert latest.get().leader == "theirs"
    assert harness.reported == [0], "what failed while it led must not count for ever"
    assert harness.acted == []
    assert harness.stood_down == 1
    assert harness.forgotten == [NOW], "answers from the time when it led must not count when it leads again"


def test_a_poll_has_no_effects_if_leadership_ends_during_it() -> None:
    harness = Harness({"good": always(3)})
    harness.on_gather = lambda: setattr(harness, "leads", False)
    runner, latest = harness.runner()
    runner.poll()

    assert latest.get().records == ()
    assert harness.acted == []


def test_an_unreadable_memory_is_not_treated_as_empty() -> None:
    harness = Harness({"forgetful": always(3), "good": always(3)}, unavailable={"forgetful"})
    runner, latest = harness.runner()
    runner.poll()

    assert statuses(latest)["forgetful"] is Status.ERROR
    assert statuses(latest)["good"] is Status.OK
    assert [name for name, _ in harness.saved] == ["good"]


def test_a_new_leader_continues_from_the_stored_memory() -> None:
    stored = Memory(last=LastValue(3, NOW - 100, NOW - 50), changes=(NOW - 100,))
    harness = Harness({"good": always(4)}, memories={"good": stored})
    runner, _ = harness.runner()
    runner.poll()

    (name, memory) = harness.saved[-1]
    assert name == "good"
    assert memory.changes == (NOW - 100, NOW)


def test_a_poll_that_only_confirms_the_value_saves_no_memory() -> None:
    harness = Harness({"good": always(3)})
    runner, _ = harness.runner()
    runner.poll()
    writes = len(harness.saved)
    for _ in range(5):
        harness.now += 10
        runner.poll()

    assert len(harness.saved) == writes


def test_memories_are_read_again_after_leadership_was_lost() -> None:
    harness = Harness({"good": always(3)})
    runner, _ = harness.runner()
    runner.poll()
    harness.leads = False
    runner.poll()
    harness.leads, harness.memories = True, {"good": Memory(last=LastValue(9, NOW, NOW), changes=(NOW,))}
    runner.poll()

    assert harness.saved[-1][1].changes == (NOW, NOW), "9 to 3 is a change"


def test_a_note_is_logged_when_it_appears_and_when_it_disappears(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "recommender.running.polls.recommendation_log")
    harness = Harness({"good": always(3)})
    runner, _ = harness.runner()
    lines: list[int] = []
    for note in ("", "", "in 2 s: the ConfigMap is broken", "in 3 s: the ConfigMap is broken", ""):
        harness.calculate = {"good": noted(note, nodes=len(lines))}
        caplog.clear()
        runner.poll()
        lines.append(len(caplog.messages))

    assert lines == [2, 0, 1, 0, 1], "the first poll also logs the entry that is refused"


def test_each_reason_for_having_no_value_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "recommender.running.polls.recommendation_log")
    harness = Harness({"good": always(3)})
    runner, _ = harness.runner()
    runner.poll()
    lines: list[int] = []
    for reason in ("no series", "no TLS for 3 s", "no series", "no TLS for 5 s", "", "no TLS for 8 s"):
        harness.calculate = {"good": lacking(reason) if reason else always(3)}
        caplog.clear()
        runner.poll()
        lines.append(len(caplog.messages))
    assert lines == [1, 1, 0, 0, 1, 1]


def test_a_change_of_the_cluster_triggers_a_poll_before_the_interval_is_over() -> None:
    polls = threading.Semaphore(0)
    harness = Harness({"good": always(3)})
    harness.on_gather = polls.release
    runner, _ = harness.runner()
    wake, stop = runner.wake, threading.Event()
    thread = threading.Thread(target=runner.run, args=(stop,), daemon=True)
    thread.start()
    assert polls.acquire(timeout=5)
    wake.set()
    assert polls.acquire(timeout=8), "the interval is 10 s"
    stop.set()
    thread.join(5)
    assert not thread.is_alive()


def test_a_poll_has_no_effects_if_the_configuration_changes_during_it() -> None:
    harness = Harness({"removed": always(3)})
    harness.on_gather = lambda: setattr(harness, "calculate", {"new": always(4)})
    runner, latest = harness.runner()
    runner.poll()
    assert (harness.acted, latest.get().records) == ([], ())
    runner.poll()
    assert harness.acted == [{"new": 4}]


def test_with_for_each_every_target_is_decided_and_remembered(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    targets = [TargetReference("apps/v1", "Deployment", "shop", name) for name in ("a", "b")]
    harness = Harness({"chat": always(3), "one": always(4)})
    harness.for_each = {"chat": EachTarget(while_known)}
    harness.loads = {"chat": {targets[0]: Unknown("no forecast yet"), targets[1]: known_load()}}
    runner, latest = harness.runner()
    runner.poll()

    found = [(record.name, record.each, record.status) for record in latest.get().records]
    assert found == [
        ("chat", targets[0], Status.STALE),
        ("chat", targets[1], Status.OK),
        ("one", None, Status.OK),
        ("refused", None, Status.ERROR),
    ]
    stored = dict(harness.saved)
    assert list(stored["chat"].by_target) == [targets[1]]
    lines = [record for record in caplog.records if record.getMessage() == "recommendation"]
    assert len(lines) == 3


def test_two_recommendations_that_scale_one_target_are_both_refused() -> None:
    target = TargetReference("apps/v1", "Deployment", "shop", "a")
    harness = Harness({"chat": always(3), "static": always(4)}, outputs=frozenset({Output.SCALE}), targets=(target,))
    harness.for_each = {"chat": EachTarget(lambda _: always(3))}
    harness.loads = {"chat": {target: known_load()}}
    runner, latest = harness.runner()
    runner.poll()

    owners = {record.name: [each.owner for each in record.targets] for record in latest.get().records}
    assert owners == {"chat": ["recommendation static"], "static": ["recommendation chat"], "refused": []}


def test_a_target_of_for_each_is_looked_up_before_it_is_scaled() -> None:
    target = TargetReference("apps/v1", "Deployment", "shop", "a")
    harness = Harness({"chat": always(3)}, outputs=frozenset({Output.SCALE}))
    harness.for_each = {"chat": EachTarget(lambda _: always(3))}
    harness.loads = {"chat": {target: known_load()}}
    harness.sizes = {target: 5}
    runner, latest = harness.runner()
    actions = []
    for _ in range(2):
        runner.poll()
        actions.append([each.message for each in latest.get().records[0].targets])
    assert actions == [
        [NOT_LOOKED_UP],
        ["the HPAs of namespace shop cannot be looked up: they are not watched; one of them may own Deployment shop/a"],
    ]
    assert latest.get().records[0].targets[0].current_replicas == 5
