"""Objects and the file in the loop: the file wins, a changed object does not affect others, look-ups take turns."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from adapter.foundation.cluster.values.state import ClusterState, Observed, Unknown
from adapter.foundation.time.clock import Clock
from recommender.configuration.changes import unchanged_names
from recommender.configuration.needs import AskedQuery, needs_of
from recommender.configuration.objects.admission import ReadObject, configuration_with_objects
from recommender.configuration.reading import read_configuration
from recommender.decisions.inputs import Inputs, TargetState
from recommender.decisions.loads.load_inputs import LoadInput
from recommender.decisions.loads.prediction import PredictedLoad, Prediction
from recommender.decisions.record import TargetAction, TargetReference
from recommender.outputs.output_telemetry import counted_as
from recommender.running.inputs.due_targets import DueTargets
from recommender.running.inputs.fair_threads import FairThreads
from recommender.running.inputs.input_gathering import Gatherer, InputSources, LookUps, LookUpThreads
from recommender.running.inputs.poll_plan import plan_of
from recommender.running.loads.histories.target_loads import LoadSeriesError, target_of
from recommender.running.memory.memories import Memories
from recommender.running.memory.store_protocol import ProcessMemoryStore
from recommender.running.polls.poll_decisions import PollDecisions
from tests.recommender.configuration.files import entry, whole
from tests.recommender.configuration.objects.objects import SETTINGS, accepted, each, linear, made, read, target

if TYPE_CHECKING:
    from recommender.configuration.recommender_configuration import Configuration

NOW: Final = 1_767_225_600.0
WEB: Final = TargetReference("apps/v1", "Deployment", "shop", "web")
PREDICTIVE: Final = (
    "predictive: {load: 'sum by (namespace, app) (x)', loadPerReplica: 1, horizon: 1m, maxReplicas: 9,"
    " forEach: {namespace: namespace, name: app}}"
)
TOP: Final = "prometheus: {url: http://p}\n"


def merged(text: str, **specs: dict[str, Any]) -> Configuration:
    file = replace(read_configuration(text, "r.yaml"), objects=SETTINGS)
    assert not file.refused
    objects = [ReadObject(made(f"shop/{name}", spec), read(spec, f"shop/{name}")) for name, spec in specs.items()]
    return configuration_with_objects(file, objects).configuration


LOAD: Final = Observed(LoadInput(Prediction(PredictedLoad(200.0, 400.0, NOW + 60), "linear", "")), NOW)


def actions(configuration: Configuration, *names: str) -> dict[str, tuple[TargetAction, str | None]]:
    """Return what happens to WEB, and its owner, by recommendation, if these ones have a series for it."""
    inputs = Inputs(
        ClusterState(nodes=Observed((), NOW), autoscalers={"shop": Observed((), NOW)}),
        targets={WEB: Observed(TargetState(1), NOW)},
        loads={name: {WEB: LOAD} for name in names},
    )
    decisions = PollDecisions(Memories(ProcessMemoryStore()), Clock()).decide(plan_of(configuration), inputs, NOW)
    outcomes = {one.name: one.decisions[0].record.targets[0] for one in decisions}
    return {name: (outcome.action, outcome.owner) for name, outcome in outcomes.items()}


def test_a_series_of_the_file_takes_precedence_over_an_object_for_the_same_target() -> None:
    scaled = entry("each", "outputs: [scale]", kind=PREDICTIVE)
    assert actions(merged(whole(scaled, top=TOP), web=linear(outputs=["scale"])), "each") == {
        "each": (TargetAction.SCALE, None),
        "shop/web": (TargetAction.REFUSED, "recommendation each"),
    }


def test_a_series_of_an_older_object_takes_precedence_over_that_of_a_newer_one() -> None:
    scaled = {**each(5), "outputs": ["scale"]}
    assert actions(merged(whole(top=TOP), first=scaled, second=scaled), "shop/first", "shop/second") == {
        "shop/first": (TargetAction.SCALE, None),
        "shop/second": (TargetAction.REFUSED, "recommendation shop/first"),
    }


def test_a_changed_object_cancels_only_its_own_decision_and_a_changed_file_cancels_all() -> None:
    text = whole(entry("dns"))
    before = merged(text, a=linear(target("a")), b=linear(target("b")))
    after = merged(text, a=linear(target("other")), b=linear(target("b")), c=linear(target("c")))
    assert unchanged_names(before, after) == frozenset({"dns", "shop/b"})
    assert unchanged_names(before, before) == frozenset({"dns", "shop/a", "shop/b"})
    assert unchanged_names(before, merged(whole(entry("dns"), entry("more")), a=linear(target("a")))) is None


def test_objects_of_all_namespaces_share_one_watch_of_autoscalers() -> None:
    assert needs_of(merged(whole(), a=linear())).autoscaler_namespaces == {""}


def test_targets_of_objects_take_turns_and_new_targets_are_first() -> None:
    turns = DueTargets(most=8)
    targets = [replace(WEB, name=f"w{number}") for number in range(20)]
    turns.follow(targets)
    for poll in range(3):
        turns.looked_up({one: Observed(TargetState(1), NOW) for one in turns.choose()}, NOW + poll, 60.0)
    turns.follow([*targets, WEB])
    assert WEB in turns.choose()
    turns.follow([WEB])
    assert turns.choose() == {WEB}


def test_series_of_another_namespace_than_the_object_have_no_target() -> None:
    for_each = accepted(each()).subject.for_each
    assert target_of({"namespace": "shop", "app": "web"}, for_each) == WEB
    with pytest.raises(LoadSeriesError, match="another namespace than shop"):
        target_of({"namespace": "kube-system", "app": "coredns"}, for_each)


def test_later_polls_do_not_wait_for_a_query_of_an_object_that_hangs() -> None:
    release, slow, quick = threading.Event(), AskedQuery("slow"), AskedQuery("quick")

    def ask(query: AskedQuery) -> Observed[float] | Unknown:
        if query == slow:
            release.wait(30)
        return Observed(1.0, NOW)

    def unused(*_: object) -> Any:  # noqa: ANN401 - never called
        raise AssertionError

    fair = FairThreads("query", 3, 2)
    threads = LookUpThreads(unused, unused, fair.submit)
    gatherer = Gatherer(InputSources(ClusterState, ask, unused, lambda _: {}), threads, threads)
    wanted = LookUps(queries=frozenset({slow, quick}), payers={slow: "shop", quick: "team"})
    found = gatherer.gather(wanted, 0.2).queries
    assert isinstance(found["slow"], Unknown)
    release.set()
    # The answer that came too late counts in the next poll, which asks anew.
    assert gatherer.gather(wanted, 30.0).queries["slow"] == Observed(1.0, NOW)


def test_objects_of_a_namespace_are_counted_together() -> None:
    assert [counted_as(name) for name in ("dns", "shop/a", "shop/b")] == ["dns", "shop/*", "shop/*"]
