"""The decisions that the leader hands to the writer of scale calls."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from recommender.configuration.recommender_configuration import Configuration
from recommender.decisions.inputs import TargetState
from recommender.decisions.loop import decide
from recommender.decisions.memory import Memory
from recommender.kinds.kind import Recommendation
from recommender.kinds.proportional.parameters import ProportionalSettings
from recommender.outputs.event_rules import TargetEvent
from recommender.running.effects.leader_effects import ClusterEffects
from tests.recommender.decisions.world import DNS, NOW, WEB, asks_for, inputs, manager, metric_only, policy

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from recommender.decisions.record import Record, TargetReference


@dataclass
class Outputs:
    """Takes in everything, and notes until when each decision may be carried out."""

    valid_until: list[float] = field(default_factory=list)
    listed: set[tuple[str, TargetReference]] = field(default_factory=set)
    unchanged: set[str] = field(default_factory=set)

    def decided(self, _recommendation: str, decided: Iterable[tuple[Record, float]]) -> None:
        self.valid_until += [valid_until for _, valid_until in decided]

    def retain(self, recommendations: Collection[str]) -> None:
        assert set(recommendations) <= {"coredns", "shop/a"}

    def retain_listed(self, listed: Collection[tuple[str, TargetReference]], unchanged: Collection[str]) -> None:
        self.listed, self.unchanged = set(listed), set(unchanged)

    def clear(self) -> None:
        raise AssertionError("the process leads")

    def add(self, *_: TargetEvent | float | Iterable[Record]) -> None:
        pass


def test_a_scale_call_is_not_sent_on_inputs_older_than_stale_after() -> None:
    outputs = Outputs()
    effects = ClusterEffects(outputs, outputs, outputs)  # type: ignore[arg-type]
    decision = decide(policy(), asks_for(5, confirmed=NOW - 50.0), inputs(), Memory(), NOW)
    configuration = Configuration(recommendations=(Recommendation(policy(), ProportionalSettings()),))
    effects.act(configuration, [decision], NOW)
    assert outputs.valid_until == [NOW + 10.0]


def test_a_target_that_is_not_listed_any_more_is_dropped_with_the_reload() -> None:
    outputs = Outputs()
    effects = ClusterEffects(outputs, outputs, outputs)  # type: ignore[arg-type]
    scaled = Recommendation(policy(targets=(WEB,)), ProportionalSettings())
    effects.reconfigured(Configuration(recommendations=(scaled, Recommendation(metric_only(), ProportionalSettings()))))
    assert outputs.listed == {("coredns", WEB)}
    assert ("coredns", DNS) not in outputs.listed


@dataclass
class Many(Outputs):
    """Takes in the decisions of a recommendation with `forEach`."""

    calls: list[tuple[str, list[str]]] = field(default_factory=list)
    events: list[str] = field(default_factory=list)

    def decided(self, recommendation: str, decided: Iterable[tuple[Record, float]]) -> None:
        self.calls.append((recommendation, [str(record.each) for record, _ in decided]))

    def add(self, *told: TargetEvent | float | Iterable[Record]) -> None:
        if len(told) == 1 and isinstance(told[0], TargetEvent):
            self.events.append(f"{told[0].reason} {told[0].target}")


def test_all_targets_of_a_recommendation_are_handed_over_together_and_news_of_each_is_an_event() -> None:
    outputs = Many()
    effects = ClusterEffects(outputs, outputs, outputs)  # type: ignore[arg-type]
    configuration = Configuration(recommendations=(Recommendation(policy(), ProportionalSettings()),))

    for size, names in ((5, ()), (6, ("argocd-controller",)), (7, ("argocd-controller",))):
        managed = TargetState(3, replicas_managers=tuple(map(manager, names)))
        known = inputs(others={WEB: managed})
        each = [policy(targets=(target,), each=target) for target in (DNS, WEB)]
        effects.act(configuration, [decide(one, asks_for(size), known, Memory(), NOW) for one in each], NOW)
    assert outputs.calls == [("coredns", [str(DNS), str(WEB)])] * 3
    assert outputs.events == [f"ScaleRefused {WEB}"]


def test_an_object_that_changes_withdraws_no_call_of_others() -> None:
    outputs = Outputs()
    effects = ClusterEffects(outputs, outputs, outputs)  # type: ignore[arg-type]
    of_file = Recommendation(policy(), ProportionalSettings())
    of_object = Recommendation(replace(policy(), name="shop/a", namespace="shop"), ProportionalSettings())
    before = Configuration(recommendations=(of_file, of_object))
    effects.reconfigured(before)
    assert outputs.unchanged == set(), "nothing has been decided by a former configuration"
    effects.act(before, [], NOW)
    changed = replace(of_object, policy=replace(of_object.policy, targets=(WEB,)))
    effects.reconfigured(replace(before, recommendations=(of_file, changed)))
    assert outputs.unchanged == {"coredns"}
    effects.reconfigured(replace(before, recommendations=(of_file, of_object), stale_after_seconds=90.0))
    assert outputs.unchanged == set(), "a change of the file ends the decisions of all"
