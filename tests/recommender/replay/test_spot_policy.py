"""Spot machines in a replay: stated interruptions, another group in the meantime, and the return to spot."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from adapter.foundation.objects.selectors import parse_selector
from benchmarks.made_past import START, PastPlan, made_past
from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings, NodeGroupSources, StaticGroup
from recommender.recording.recording import RecordedPod, RecordingError
from recommender.replay.assumptions import Assumptions
from recommender.replay.cluster.events import events_of
from recommender.replay.cluster.replay_facts import scene_of
from recommender.replay.policies import Outlook, policies_of
from recommender.replay.policy_outcome import PolicyOutcome, SpotOutcome
from recommender.replay.replay import replay_report
from recommender.replay.simulation.simulation import outcomes_of
from recommender.replay.spot import SpotMarket
from tests.recommender.replay.outcomes import values_of

PAST: Final = replace(made_past(PastPlan(days=1, nodes=12, seed=3)), nodes=())
TEMPLATE: Final = {"cpu": 16_000, "memory": 64 << 30, "pods": 110}
SIZES: Final = ClusterSizeSettings(
    NodeGroupSources(
        static=(
            StaticGroup("spot", 0, 100, parse_selector("pool=spot"), price=0.2, capacity=TEMPLATE),
            StaticGroup("steady", 0, 100, parse_selector("pool=steady"), price=0.8, capacity=TEMPLATE),
        )
    ),
    expanders=("priority",),
    priorities={10: ("spot",), 5: (".*",)},
    max_node_provision_seconds=180.0,
)


def outcomes(market: SpotMarket | None) -> dict[str, PolicyOutcome]:
    scene = scene_of(PAST, SIZES, 60.0)
    policies = policies_of(SIZES, 2, has_prices=True, outlook=Outlook(None, market))
    wanted = [one for one in policies if one.name in {"configured", "spot: none"}]
    return {one.name: one for one in outcomes_of(scene, wanted, events_of(scene))}


def test_without_interruptions_spot_machines_differ_only_in_price() -> None:
    assumed = outcomes(SpotMarket({"spot": 0.0}, 1800.0))
    usual = outcomes(None)
    assert values_of(replace(assumed["configured"], spot=None)) == values_of(usual["configured"])
    assert assumed["configured"].spot == SpotOutcome(0, 0, 0, 0.0, 0.0)
    spot, none = (replace(one, name="", cost=None) for one in assumed.values())
    assert values_of(spot) == values_of(none)
    costs = [one.cost for one in assumed.values()]
    assert costs[0] is not None
    assert costs[1] is not None
    assert costs[1].sum() == pytest.approx(4 * costs[0].sum())


def test_pods_of_interrupted_machines_wait_and_run_on_others_until_spot_is_available() -> None:
    found = outcomes(SpotMarket({"spot": 0.2}, 1200.0))
    spot, none = found["configured"], found["spot: none"]
    assert spot.spot is not None
    assert spot.spot.interruptions > 3
    assert spot.spot.interrupted_pods > 0
    assert spot.spot.fallback_nodes > 0
    assert spot.pending_minutes.sum() > none.pending_minutes.sum()
    assert spot.cost is not None
    assert none.cost is not None
    assert spot.spot.fallback_cost == pytest.approx(0.8 * spot.spot.fallback_node_hours)
    assert 0 < 0.8 * spot.spot.fallback_node_hours < spot.cost.sum() < none.cost.sum(), "spot machines come back"
    assert none.spot == SpotOutcome(0, 0, 0, 0.0, 0.0)


def test_no_other_group_is_used_if_spot_returns_in_time() -> None:
    found = outcomes(SpotMarket({"spot": 0.2}, 30.0))["configured"].spot
    assert found is not None
    assert found.interruptions > 3
    assert found.fallback_nodes == 0


def test_the_seed_decides_when_machines_are_interrupted() -> None:
    first, again, other = (outcomes(SpotMarket({"spot": 0.2}, 1200.0, seed))["configured"] for seed in (1, 1, 2))
    assert values_of(first) == values_of(again)
    assert values_of(first) != values_of(other)


def test_a_spot_machine_is_given_up_in_time_and_spot_is_tried_again_after_the_back_off() -> None:
    kind = next(number for number, one in enumerate(PAST.pod_kinds) if one.controller and one.controller.kind == "Job")
    past = replace(PAST, pods=(RecordedPod(kind, START, None, None),), end=START + 4 * 3600.0)
    scene = scene_of(past, SIZES, 60.0)
    policy = policies_of(SIZES, 2, has_prices=True, outlook=Outlook(None, SpotMarket({"spot": 1.0}, 86_400.0)))[0]
    (found,) = outcomes_of(scene, [policy], events_of(scene))
    assert found.spot is not None
    assert found.spot.interruptions == 1
    # Noticed after 3 s, given up after 180 s, noticed again, and 60 s until the other machine is ready.
    assert max(found.wait_minutes) * 60 == pytest.approx(3 + 180 + 3 + 60)


def test_machines_with_the_smallest_positive_rate_are_never_interrupted() -> None:
    found = outcomes(SpotMarket({"spot": 5e-324}, 1200.0))["configured"].spot
    assert found == SpotOutcome(0, 0, 0, 0.0, 0.0)


def test_unknown_group_is_refused_with_the_existing_ones() -> None:
    with pytest.raises(RecordingError, match="no node group 'spto' to replay: there are spot, steady"):
        replay_report(PAST, SIZES, assumptions=Assumptions(market=SpotMarket({"spto": 0.1}, 60.0)))


def test_report_shows_the_cost_of_the_fallback() -> None:
    report = replay_report(PAST, SIZES, 60.0, assumptions=Assumptions(market=SpotMarket({"spot": 0.2}, 1200.0)))
    note = next(note for note in report.notes if note.startswith("configured: "))
    assert "interruptions took the node of" in note
    assert "which cost" in note
    assert "spot: none" in [one.name for one in report.policies]
    assert not any("--spot-absence" in note for note in report.notes)


def test_nodes_of_spot_groups_are_replaced_at_the_start_in_the_policy_without_spot() -> None:
    past = made_past(PastPlan(days=0.2, nodes=12, seed=3))
    groups = (
        StaticGroup("spot", 0, 100, parse_selector("pool in (small, large)"), price=0.2),
        StaticGroup("steady", 0, 100, parse_selector("pool=steady"), price=0.8, capacity=TEMPLATE),
    )
    sizes = ClusterSizeSettings(NodeGroupSources(static=groups))
    scene = scene_of(past, sizes, 600.0)
    policies = policies_of(sizes, 2, has_prices=True, outlook=Outlook(None, SpotMarket({"spot": 0.0}, 0.0)))
    (none,) = outcomes_of(scene, [one for one in policies if one.name == "spot: none"], events_of(scene))
    assert max(size for time, size in none.sizes if time == past.start) > 0
    assert none.cost is not None
    assert none.cost.sum() == pytest.approx(0.8 * none.node_hours.sum())
    assert (none.wait_minutes > 0).mean() < 0.3, "what stood on spot machines has a node at once"
