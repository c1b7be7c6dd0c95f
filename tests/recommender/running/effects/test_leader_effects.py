"""The decisions that the leader passes to the writer of scale calls."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.values.state import Observed
from adapter.foundation.time.clock import Clock
from recommender.configuration.recommender_configuration import Configuration
from recommender.decisions.calculation import Calculation, InputMissingError
from recommender.decisions.inputs import TargetState
from recommender.decisions.loop import decide
from recommender.decisions.memory import Memory
from recommender.decisions.policy_settings import Brakes, Direction, Output, Pause
from recommender.decisions.record import TargetReference
from recommender.kinds.kind import Recommendation
from recommender.kinds.proportional.parameters import ProportionalSettings
from recommender.outputs.event_limits import EventLimits
from recommender.outputs.event_rules import TargetEvent
from recommender.outputs.events import EventWriter
from recommender.outputs.pending_writes import PendingWrite, pending_writes_of
from recommender.outputs.scale_results import ScaleResult
from recommender.outputs.write_attempt import ScaleOutcome
from recommender.running.effects.leader_effects import ClusterEffects
from recommender.running.inputs.own_writes import OwnWrites
from tests.recommender.decisions.harness import DNS, NOW, WEB, asks_for, inputs, policy
from tests.recommender.outputs.scale_harness import DB, Harness
from tests.support.apiserver_kinds import DEPLOYMENTS, EVENTS, STATEFUL_SETS
from tests.support.apiserver_objects import Direct, ObjectStore

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from recommender.decisions.inputs import Inputs
    from recommender.decisions.record import Record
    from recommender.running.inputs.input_gathering import TargetInput


@dataclass
class Outputs:
    """Accepts everything, and records until when each decision may be carried out."""

    valid_until: list[float] = field(default_factory=list)

    def follow_decision(self, _recommendation: str, decided: Iterable[tuple[Record, float]]) -> None:
        self.valid_until += [valid_until for _, valid_until in decided]

    def retain(self, recommendations: Collection[str]) -> None:
        assert set(recommendations) == {"coredns"}

    def clear(self) -> None:
        raise AssertionError("the process leads")

    def add(self, *_: TargetEvent | float | Iterable[Record]) -> None:
        pass


class Anything(Outputs):
    """Accepts what several recommendations want."""

    def retain(self, recommendations: Collection[str]) -> None:
        pass


def test_a_scale_call_is_not_sent_on_inputs_older_than_stale_after() -> None:
    outputs = Outputs()
    effects = ClusterEffects(outputs, outputs, outputs.add)  # type: ignore[arg-type]
    decision = decide(policy(), asks_for(5, confirmed=NOW - 50.0), inputs(), Memory(), NOW)
    configuration = Configuration(recommendations=(Recommendation(policy(), ProportionalSettings()),))
    effects.act(configuration, [decision], NOW)
    assert outputs.valid_until == [NOW + 10.0]


@dataclass
class Dated(Outputs):
    """Records until when the call for each target may be sent."""

    until: dict[TargetReference, float] = field(default_factory=dict)

    def follow_decision(self, _recommendation: str, decided: Iterable[tuple[Record, float]]) -> None:
        self.until = {
            write.target: write.valid_until for record, until in decided for write in pending_writes_of(record, until)
        }


def test_a_target_without_a_value_does_not_stop_the_scale_call_for_another_target() -> None:
    outputs = Dated()
    effects = ClusterEffects(outputs, outputs, outputs.add)  # type: ignore[arg-type]
    both = policy(targets=(DNS, WEB))
    configuration = Configuration(recommendations=(Recommendation(both, ProportionalSettings()),))

    def calculate(known: Inputs, memory: Memory, now: float) -> Calculation:
        """Return a size for WEB alone after a while, as a schedule does that is below the current size of DNS."""
        if now > NOW and DNS in known.targets:
            raise InputMissingError("its load is not known")
        return asks_for(5, confirmed=now)(known, memory, now)

    memory = Memory()
    for now in (NOW, NOW + 3600.0):
        decision = decide(both, calculate, inputs(others={WEB: TargetState(3)}, time=now), memory, now)
        effects.act(configuration, [decision], now)
        memory = decision.memory
    assert outputs.until == {WEB: NOW + 3600.0 + configuration.stale_after_seconds}


@dataclass
class Many(Outputs):
    """Accepts the decisions of a recommendation with `forEach`."""

    calls: list[tuple[str, list[str]]] = field(default_factory=list)
    events: list[str] = field(default_factory=list)

    def follow_decision(self, recommendation: str, decided: Iterable[tuple[Record, float]]) -> None:
        self.calls.append((recommendation, [str(record.each) for record, _ in decided]))

    def add(self, *arguments: TargetEvent | float | Iterable[Record]) -> None:
        if len(arguments) == 1 and isinstance(arguments[0], TargetEvent):
            self.events.append(f"{arguments[0].reason} {arguments[0].target}")


def test_all_targets_of_a_recommendation_are_passed_on_together_and_each_new_refusal_is_an_event() -> None:
    outputs = Many()
    effects = ClusterEffects(outputs, outputs, outputs.add)  # type: ignore[arg-type]
    configuration = Configuration(recommendations=(Recommendation(policy(), ProportionalSettings()),))

    for size, names in ((5, ()), (6, ("argocd-controller",)), (7, ("argocd-controller",))):
        managed = TargetState(3, replicas_managers=names)
        known = inputs(others={WEB: managed})
        each = [policy(targets=(target,), each=target) for target in (DNS, WEB)]
        effects.act(configuration, [decide(one, asks_for(size), known, Memory(), NOW) for one in each], NOW)
    assert outputs.calls == [("coredns", [str(DNS), str(WEB)])] * 3
    assert outputs.events == [f"ScaleRefused {WEB}"]


def test_an_object_refused_in_each_poll_does_not_use_up_the_events_of_its_namespace() -> None:
    seconds, counted, objects = [0.0], list[str](), ObjectStore()
    clock = Clock(lambda: seconds[0], lambda: NOW + seconds[0])
    events = EventWriter(Direct(objects, lambda _method, _path: None), lambda _: "uid", counted.append, clock=clock)
    limits = EventLimits(counted.append, clock)
    effects = ClusterEffects(Anything(), events, Anything().add, limits=limits)  # type: ignore[arg-type]
    refused, other = (
        Recommendation(replace(policy(targets=(target,)), name=name, namespace="shop"), ProportionalSettings())
        for name, target in (("shop/refused", WEB), ("shop/other", DB))
    )
    known = inputs(others={WEB: TargetState(3, replicas_managers=("argocd-controller",)), DB: TargetState(3)})
    metric = replace(other.policy, outputs=frozenset({Output.METRIC}))
    for poll in range(130):
        size = 5 if poll < 128 else 6
        decisions = [decide(one, asks_for(size), known, Memory(), NOW) for one in (refused.policy, metric)]
        effects.act(Configuration(recommendations=(refused, other)), decisions, NOW)
        events.flush()
        seconds[0] += 5.0
    assert "dropped" not in counted
    reasons = [(event["reason"], event["involvedObject"]["name"]) for event in objects.listed(EVENTS)]
    # A refusal is written again after ten minutes; another size makes it another refusal.
    assert sorted(reasons) == [("RecommendationChanged", DB.name), *[("ScaleRefused", WEB.name)] * 3]


OF_FILE = Recommendation(policy(targets=(WEB,)), ProportionalSettings())
OF_OBJECT = Recommendation(replace(policy(targets=(DB,)), name="shop/a", namespace="shop"), ProportionalSettings())
CONFIGURED = Configuration(recommendations=(OF_FILE, OF_OBJECT))
PAUSED = replace(OF_OBJECT, policy=replace(OF_OBJECT.policy, brakes=Brakes(paused=Pause(Direction.BOTH))))
CHANGES = {
    "nothing": (CONFIGURED, {WEB, DB}),
    "another object": (replace(CONFIGURED, object_names=frozenset({"shop/a", "shop/b"})), {WEB, DB}),
    "the object": (replace(CONFIGURED, recommendations=(OF_FILE, PAUSED)), {WEB}),
    "the object is gone": (replace(CONFIGURED, recommendations=(OF_FILE,)), {WEB}),
    "the file": (replace(CONFIGURED, stale_after_seconds=90.0), set[TargetReference]()),
}


@pytest.mark.parametrize("is_late", [False, True], ids=["decided-before", "decided-after"])
@pytest.mark.parametrize(("changed", "called"), CHANGES.values(), ids=CHANGES)
def test_a_configuration_change_cancels_only_the_scale_calls_of_changed_recommendations(
    changed: Configuration, called: set[TargetReference], *, is_late: bool
) -> None:
    harness, outputs = Harness(), Outputs()
    effects = ClusterEffects(harness.writer, outputs, outputs.add)  # type: ignore[arg-type]
    decisions = [
        decide(each.policy, asks_for(5), inputs(others={target: TargetState(3)}), Memory(), NOW)
        for each in CONFIGURED.recommendations
        for target in each.policy.targets
    ]
    harness.wall_ahead = NOW
    if is_late:
        effects.reconfigured(changed)
    effects.act(CONFIGURED, decisions, NOW)
    if not is_late:
        effects.reconfigured(changed)
    harness.wait(2)
    kinds = {WEB: DEPLOYMENTS, DB: STATEFUL_SETS}
    assert {target for target, kind in kinds.items() if harness.size(kind, target.name) == 5} == called


def test_sizes_that_this_process_wrote_no_longer_count_after_another_one_leads() -> None:
    """The next leader of the same installation writes as the same field manager."""
    own = OwnWrites(lambda: NOW)
    found: TargetInput = Observed(TargetState(7, replicas_managers=("tidewatch",)), NOW + 1.0)
    write = PendingWrite("coredns", DNS, 4, NOW + 60.0)
    own.begin(write)
    own.note(ScaleOutcome(write, ScaleResult.OK, stored=4))
    look = own.mark_replaced(lambda targets: dict.fromkeys(targets, found))
    assert look([DNS]) != {DNS: found}
    harness, outputs = Harness(), Outputs()
    ClusterEffects(harness.writer, outputs, outputs.add, own_writes=own).stand_down()  # type: ignore[arg-type]
    assert look([DNS]) == {DNS: found}
