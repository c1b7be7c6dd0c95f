"""A forecast of pod counts in a replay: what it knows, what it adds, and what it gains."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.cluster.values.pods import ControllerReference
from benchmarks.made_past import START, PastPlan, made_past
from recommender.decisions.record import TargetReference
from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings, NodeGroupSources, WorkloadForecast
from recommender.kinds.predictive.predictive_settings import ModelName, PredictiveSettings
from recommender.recording.recording import RecordedPod
from recommender.replay.assumptions import Assumptions
from recommender.replay.cluster.events import events_of
from recommender.replay.cluster.replay_facts import scene_of
from recommender.replay.forecasts.workload_counts import STEP_SECONDS, workload_counts, workload_of
from recommender.replay.forecasts.workload_forecasts import ForecastPlan, workload_forecasts
from recommender.replay.policies import Outlook, policies_of
from recommender.replay.replay import replay_report
from recommender.replay.reports.forecast_worth import forecast_worth
from recommender.replay.simulation.simulation import outcomes_of
from tests.recommender.replay.groups import STATIC_GROUPS
from tests.recommender.replay.outcomes import values_of
from tests.recommender.replay.test_verdict import DAYS, KNOWN, outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recommender.recording.recording import Recording
    from recommender.replay.cluster.replay_facts import Scene
    from recommender.replay.forecasts.workload_forecasts import WorkloadForecasts
    from recommender.replay.policy_outcome import PolicyOutcome

SIZES: Final = ClusterSizeSettings(NodeGroupSources(static=STATIC_GROUPS))
EVERY: Final = (ForecastPlan(PredictiveSettings()),)


@cache
def four_days() -> Recording:
    return made_past(PastPlan(days=4, nodes=12, seed=3))


@cache
def scene_of_four_days() -> Scene:
    return scene_of(four_days(), SIZES)


@cache
def forecasts_of_four_days() -> WorkloadForecasts | None:
    return workload_forecasts(scene_of(four_days(), SIZES, 120.0), EVERY)


def with_and_without(scene: Scene, sizes: ClusterSizeSettings = SIZES) -> list[PolicyOutcome]:
    """Return the outcome of the configured policy, and of the one with a forecast."""
    outlook = Outlook(workload_forecasts(scene, EVERY))
    policies = policies_of(sizes, len(STATIC_GROUPS), has_prices=True, outlook=outlook)
    both = [one for one in policies if one.name in {"configured", "forecasts: pod counts"}]
    assert len(both) == 2
    return list(outcomes_of(scene, both, events_of(scene)))


def only(past: Recording, pods: Sequence[RecordedPod]) -> Recording:
    return replace(past, pods=tuple(sorted(pods, key=lambda pod: pod.created)))


def test_nodes_for_pods_that_a_forecast_expects_are_added_in_advance() -> None:
    without, having = with_and_without(scene_of_four_days())
    assert having.pending_minutes[2:].sum() < 0.7 * without.pending_minutes[2:].sum()
    assert having.node_hours.sum() > without.node_hours.sum(), "and that is not for nothing"
    assert having.node_hours[0] == pytest.approx(without.node_hours[0], rel=0.05), "two days must be known first"


@given(counts=st.lists(st.integers(1, 40), min_size=1, max_size=4))
@settings(max_examples=10, deadline=None)
def test_flat_load_has_the_same_result_with_and_without_a_forecast(counts: list[int]) -> None:
    flat = [RecordedPod(kind, START - 60, None, None) for kind, count in enumerate(counts) for _ in range(count)]
    jobs = [
        pod for pod in four_days().pods if four_days().pod_kinds[pod.kind].controller is not None and pod.kind >= 60
    ]
    scene = scene_of(only(four_days(), [*flat, *jobs]), SIZES, 120.0)
    without, having = with_and_without(scene)
    assert values_of(having)[1:] == values_of(without)[1:]


@given(step=st.integers(600, 1100))
@settings(max_examples=10, deadline=None)
def test_forecast_does_not_depend_on_later_pods(step: int) -> None:
    now = four_days().start + step * STEP_SECONDS
    known = [replace(pod, gone=None if pod.gone is None or pod.gone > now else pod.gone) for pod in four_days().pods]
    cut = scene_of(only(four_days(), [pod for pod in known if pod.created <= now]), SIZES, 120.0)
    whole = forecasts_of_four_days()
    past = workload_forecasts(cut, EVERY)
    assert whole is not None
    assert past is not None
    by_kind = [found.expected[found.of_kind[:60], step - 1] for found in (whole, past)]
    assert by_kind[0].tolist() == by_kind[1].tolist()


def test_counts_are_the_largest_within_each_step() -> None:
    found = workload_counts(scene_of_four_days())
    assert len(found.workloads) == 60, "Jobs and DaemonSets have no forecast"
    place, step = 7, 500
    kinds = np.flatnonzero(found.of_kind == place).tolist()
    begin, end = four_days().start + step * STEP_SECONDS, four_days().start + (step + 1) * STEP_SECONDS
    pods = [pod for pod in four_days().pods if pod.kind in kinds]
    moments = [begin, *(pod.created for pod in pods if begin < pod.created <= end)]
    counts = [sum(pod.created <= at and (pod.gone is None or pod.gone > at) for pod in pods) for at in moments]
    assert found.history.values[place, step] == max(counts)


@pytest.mark.parametrize(
    ("kind", "name", "workload"),
    [
        ("ReplicaSet", "web-5d8f7c9b6", ("Deployment", "shop", "web")),
        ("ReplicaSet", "web-api", ("ReplicaSet", "shop", "web-api")),
        ("StatefulSet", "db", ("StatefulSet", "shop", "db")),
        ("Job", "nightly-29012345", None),
        ("DaemonSet", "logs", None),
    ],
)
def test_workload_is_named_by_its_controller(kind: str, name: str, workload: tuple[str, str, str] | None) -> None:
    pod = replace(four_days().pod_kinds[0], controller=ControllerReference("apps/v1", kind, name, "uid"))
    assert workload_of(pod) == workload


@pytest.mark.parametrize(
    ("settings_", "present", "missing"),
    [
        (PredictiveSettings(max_growth=3.0), 10.0, 20.0),
        (PredictiveSettings(), 10.0, 10.0),
        (PredictiveSettings(max_growth=3.0, max_replicas=15), 10.0, 5.0),
        (PredictiveSettings(max_growth=3.0, max_replicas=15), 20.0, 0.0),
        (PredictiveSettings(), 0.0, 2.0),
    ],
)
def test_expected_pods_are_bounded_as_in_run(settings_: PredictiveSettings, present: float, missing: float) -> None:
    found = workload_forecasts(scene_of_four_days(), [ForecastPlan(settings_)])
    assert found is not None
    many = replace(found, expected=np.full_like(found.expected, 1000.0))
    counts = np.full(len(many.expected), present)
    assert many.missing_pods(four_days().end - 1, counts).tolist() == [missing] * len(counts)
    assert not many.missing_pods(four_days().start + 1, counts).any(), "no step is over"


def test_forecasts_of_the_configuration_are_used_by_all_policies_but_one() -> None:
    sizes = replace(SIZES, forecasts=(WorkloadForecast("web"),))
    counts = workload_counts(scene_of_four_days())
    kind, namespace, name = counts.workloads[int(counts.history.values.sum(axis=1).argmax())]
    target = TargetReference("apps/v1", kind, namespace, name)
    named = ForecastPlan(PredictiveSettings(model=ModelName.SEASONAL_HELD), (target,))
    found = workload_forecasts(scene_of_four_days(), [named])
    assert found is not None
    places = {place for place, row in enumerate(found.expected) if row.any()}
    assert [counts.workloads[place][2] for place in places] == [name]
    policies = policies_of(sizes, 2, has_prices=True, outlook=Outlook(found))
    assert [one.name for one in policies if one.forecasts is None] == ["forecasts: none"]
    unknown = replace(named, targets=(replace(target, name="other"),))
    assert workload_forecasts(scene_of_four_days(), [unknown]) is None


def test_report_shows_the_value_of_the_forecast() -> None:
    report = replay_report(four_days(), SIZES, assumptions=Assumptions(EVERY))
    assert report.worth is not None
    assert report.worth.waits_less_ratio > 0
    assert report.notes[0] == str(report.worth)
    assert "forecasts: pod counts" in [one.name for one in report.policies]
    assert any("--spot-interruptions" in note and "--spot-absence" in note for note in report.notes)


def test_value_of_a_forecast_compares_the_days_of_both_policies() -> None:
    without = outcome("configured", 100.0, pending=60.0)
    having = outcome("forecasts: pod counts", 101.0, pending=30.0)
    worth = forecast_worth([without, having], KNOWN, 0.0)
    assert worth is not None
    assert (worth.waits_less_ratio, worth.waits_less) == (0.5, (0.5, 0.5))
    assert worth.costs_more_ratio == pytest.approx(0.01)
    assert worth.cost_per_pod_hour == pytest.approx(DAYS * 1.0 / (DAYS * 0.5))
    assert forecast_worth([without], KNOWN, 0.0) is None
    assert forecast_worth([without, having], np.zeros(DAYS), 0.0) is None
