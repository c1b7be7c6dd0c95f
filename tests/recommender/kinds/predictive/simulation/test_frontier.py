from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from recommender.kinds.predictive.simulation.frontier import ONLY_THE_POLICY, FrontierPoint, compare, frontier
from recommender.kinds.predictive.simulation.measures import JudgedLoad, Measures
from recommender.kinds.predictive.simulation.serving import FleetSettings

SETTINGS = FleetSettings(step_seconds=60.0, startup_seconds=180.0, load_per_replica=10.0)
NOTHING = Measures(0, 0, 0, 0, 0, 0, 0, 0)


def point(ratio: float, hours: float, tau: float) -> FrontierPoint:
    return FrontierPoint(
        ratio, replace(NOTHING, replica_hours=hours, tau_under_percent=tau, theta_under_percent=tau / 10)
    )


POINTS = (point(0.0, 100, 8.0), point(0.1, 110, 4.0), point(0.2, 120, 0.0))


@pytest.mark.parametrize(
    ("hours", "tau", "cost", "ratio"),
    [
        (100, 8.0, 0.0, 1.0),
        (105, 3.0, 0.05, 0.5),
        (110, 1.0, 0.1, 0.25),
        (120, 0.0, 0.2, None),
        (120, 0.5, 0.2, ONLY_THE_POLICY),
        (90, 16.0, 0.0, 2.0),
    ],
)
def test_a_policy_is_compared_at_its_own_cost(hours: float, tau: float, cost: float, ratio: float | None) -> None:
    measures = replace(NOTHING, replica_hours=hours, tau_under_percent=tau, theta_under_percent=tau / 10)
    found = compare(measures, POINTS)
    assert found.cost_as_headroom_ratio == pytest.approx(cost)
    for versus in (found.tau_under_versus_headroom, found.theta_under_versus_headroom):
        assert versus == (None if ratio is None else pytest.approx(ratio))


def test_the_smallest_of_ratios_with_equal_costs_is_reported() -> None:
    flat = (point(0.0, 100, 1.0), point(0.1, 100, 1.0), point(0.2, 120, 0.5))
    assert compare(flat[1].measures, flat).cost_as_headroom_ratio == 0


def test_headroom_compared_with_itself_has_the_ratio_1() -> None:
    load = 100 + 80 * np.sin(np.arange(2000) / 10)
    points = frontier(JudgedLoad(load, np.ones(2000, dtype=bool), SETTINGS))
    hours = [each.measures.replica_hours for each in points]
    assert hours == sorted(hours)
    found = compare(points[10].measures, points)
    assert found.tau_under_versus_headroom == 1
    assert found.changes_versus_headroom == 1


def test_the_frontier_grows_until_it_costs_as_much_as_a_policy() -> None:
    load = 100 + 80 * np.sin(np.arange(500) / 60)
    judged = JudgedLoad(load, np.ones(500, dtype=bool), SETTINGS)
    points = frontier(judged, ratios=(0.0, 0.1))
    wanted = 20 * points[-1].measures.replica_hours
    grown = frontier(judged, wanted, ratios=(0.0, 0.1))
    assert grown[:2] == points
    assert grown[-2].measures.replica_hours < wanted <= grown[-1].measures.replica_hours
    assert frontier(judged, points[-1].measures.replica_hours, ratios=(0.0, 0.1)) == points


@pytest.mark.parametrize("load", [0.0, math.nan])
def test_a_frontier_stops_growing_if_it_cannot_cost_more(load: float) -> None:
    judged = JudgedLoad(np.full(50, load), np.ones(50, dtype=bool), SETTINGS)
    assert frontier(judged, 1e9, ratios=(0.0, 0.1)) == frontier(judged, ratios=(0.0, 0.1))


def test_a_frontier_stops_growing_at_the_largest_size() -> None:
    settings = replace(SETTINGS, max_replicas=3)
    judged = JudgedLoad(np.full(50, 200.0), np.ones(50, dtype=bool), settings)
    assert frontier(judged, 1e9, ratios=(0.0, 0.1)) == frontier(judged, ratios=(0.0, 0.1))
