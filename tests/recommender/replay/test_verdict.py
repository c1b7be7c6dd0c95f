"""A policy is recommended only if it certainly saves money and makes nothing worse."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.replay.policy_outcome import PolicyOutcome
from recommender.replay.reports.verdict import verdict_of

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray

DAYS = 10
KNOWN = np.ones(DAYS)


def outcome(
    name: str, cost: float | None, *, pending: float = 10.0, evictions: float = 5.0, swing: float = 0.0
) -> PolicyOutcome:
    """Return a policy that costs this much on each day, alternately `swing` more and less."""
    swings = swing * np.where(np.arange(DAYS) % 2, 1.0, -1.0)
    hours = np.full(DAYS, 100.0 if cost is None else cost) + swings
    waits = np.full(DAYS, pending)
    return PolicyOutcome(name, hours, None if cost is None else hours, waits, waits, np.full(DAYS, evictions), 1, (), 0)


PRESENT = outcome("configured", 100.0)


@pytest.mark.parametrize(
    ("other", "use", "reason"),
    [
        (outcome("cheaper", 90.0), "cheaper", "saves 10.0% of the cost (90% interval 10.0% to 10.0%, by 10 days)"),
        (outcome("dearer", 110.0), "configured", "no other policy is cheaper without harm"),
        (outcome("slower", 80.0, pending=20.0), "configured", "pods together wait up to 10 minutes more a day"),
        (outcome("restless", 90.0, evictions=200.0), "configured", "more evictions for each node-hour saved"),
        (outcome("perhaps", 99.0, swing=30.0), "configured", "it may save nothing"),
        (outcome("hardly", 99.97), "configured", "it may save nothing (90% interval 0.0% to 0.0%)"),
    ],
    ids=lambda value: value.name if isinstance(value, PolicyOutcome) else "",
)
def test_worse_policy_is_not_recommended(other: PolicyOutcome, use: str, reason: str) -> None:
    found = verdict_of([PRESENT, other], KNOWN, 0.0)
    assert found.use == use
    assert reason in found.reason


@pytest.mark.parametrize(
    ("known", "unknown_ratio", "other", "reason"),
    [
        (
            np.array([1.0, 1.0, *[0.0] * (DAYS - 2)]),
            0.0,
            outcome("cheaper", 50.0),
            "2 whole days, and a verdict needs 3",
        ),
        (KNOWN, 0.2, outcome("cheaper", 50.0), "20% of the time is not recorded"),
        (KNOWN, 0.0, outcome("unpriced", None), "not all node groups have a price"),
    ],
)
def test_verdict_is_withheld_if_the_history_is_insufficient(
    known: FloatArray, unknown_ratio: float, other: PolicyOutcome, reason: str
) -> None:
    found = verdict_of([PRESENT, other], known, unknown_ratio)
    assert (found.use, found.saves_ratio, found.interval) == (None, None, None)
    assert reason in found.reason


def test_nothing_can_be_saved_if_nodes_cost_nothing() -> None:
    found = verdict_of([outcome("configured", 0.0), outcome("free", 0.0)], KNOWN, 0.0)
    assert (found.use, found.saves_ratio, found.interval) == (None, None, None)
    assert "cost nothing by their prices, so nothing can be saved" in found.reason


def test_days_without_a_paid_node_count_as_days_without_savings() -> None:
    paid = np.array([0.0] * (DAYS - 1) + [100.0])
    present, other = (replace(outcome(name, 0.0), cost=cost) for name, cost in (("configured", paid), ("b", paid / 2)))
    found = verdict_of([present, other], KNOWN, 0.0)
    assert found.use == "configured"
    assert "would save 50.0%, but it may save nothing (90% interval 0.0% to 50.0%)" in found.reason


def test_equal_numbers_of_evictions_are_not_reported_as_fewer() -> None:
    found = verdict_of([PRESENT, outcome("cheaper", 90.0)], KNOWN, 0.0)
    assert found.reason.endswith("pods wait no longer, and there are as many evictions.")


def test_a_small_increase_of_waits_is_reported() -> None:
    found = verdict_of(
        [outcome("configured", 100.0, pending=100.0), outcome("cheaper", 90.0, pending=105.0)], KNOWN, 0.0
    )
    assert found.use == "cheaper"
    assert "pods together wait 5 minutes more a day" in found.reason


def test_more_evictions_without_saved_node_hours_are_reported() -> None:
    other = replace(outcome("moved", 90.0, evictions=6.0), node_hours=np.full(DAYS, 101.0))
    found = verdict_of([PRESENT, other], KNOWN, 0.0)
    assert found.use == "configured"
    assert "there are 10 more evictions, and no node-hour is saved" in found.reason


@given(costs=st.lists(st.floats(10, 200), min_size=1, max_size=4), pending=st.floats(0, 100))
def test_recommended_policy_is_neither_more_expensive_nor_slower(costs: list[float], pending: float) -> None:
    others = [outcome(f"p{place}", cost, pending=pending) for place, cost in enumerate(costs)]
    found = verdict_of([PRESENT, *others], KNOWN, 0.0)
    used = next(one for one in [PRESENT, *others] if one.name == found.use)
    assert used.cost is not None
    assert PRESENT.cost is not None
    assert used.cost.sum() <= PRESENT.cost.sum()
    assert used.pending_minutes.mean() <= PRESENT.pending_minutes.mean() * 1.05 + 1.0


def test_unknown_days_do_not_count() -> None:
    other = outcome("cheaper", 90.0)
    assert other.cost is not None
    other.cost[5:] = 1000.0
    known = np.array([1.0] * 5 + [0.0] * 5)
    assert verdict_of([PRESENT, other], known, 0.0).use == "cheaper"
