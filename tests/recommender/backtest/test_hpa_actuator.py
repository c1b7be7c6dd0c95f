from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from adapter.foundation.hpa import totals
from adapter.foundation.hpa.arithmetic import Tolerances
from adapter.foundation.hpa.evaluation import evaluate
from adapter.foundation.hpa.history import HpaHistory, PastRecommendation
from adapter.foundation.hpa.proposals import HpaWorkload, Totals, Unavailable
from adapter.foundation.hpa.rules import Behaviour
from adapter.foundation.hpa.spec import AverageValue, ExternalMetric, HPASpec
from recommender.backtest.hpa_actuator import (
    METRIC_AGE_SECONDS,
    SYNC_SECONDS,
    average_value_replicas,
    first_size,
    through_hpa,
)
from recommender.kinds.predictive.simulation.serving import FleetSettings


def settings_of(step: float, *, most: int | None = None, startup: float = 180.0) -> FleetSettings:
    return FleetSettings(step, startup, load_per_replica=10.0, min_replicas=2, max_replicas=most)


def every_sync(sizes: list[float], settings: FleetSettings) -> list[tuple[float, int]]:
    """Return the size after each sync of the complete HPA."""
    spec = HPASpec(
        (ExternalMetric("recommended_replicas", AverageValue(1000)),),
        settings.max_replicas or 2**31 - 1,
        settings.min_replicas,
        Behaviour(),
    )
    replicas, now, found = first_size(np.array(sizes), settings), 0.0, []
    history = HpaHistory((PastRecommendation(replicas, 0.0),))
    while now < len(sizes) * settings.step_seconds:
        over = math.floor((now - METRIC_AGE_SECONDS) / settings.step_seconds + 1e-9) - 1
        if over >= 0:
            seen = (
                Unavailable("no metric") if math.isnan(sizes[over]) else Totals((math.ceil(sizes[over] * 1000 - 1e-6),))
            )
            decision = evaluate(spec, HpaWorkload(replicas, replicas), [seen], history, now=now)
            replicas, history = decision.desired, decision.history
        found.append((now, replicas))
        now += SYNC_SECONDS
    return found


@examples(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 60) | st.just(math.nan), st.integers(1, 6)), min_size=1, max_size=8),
    st.sampled_from([10.0, 15.0, 60.0, 90.0, 600.0]),
    st.sampled_from([None, 17]),
)
def test_each_sync_decides_as_the_complete_hpa_does(
    runs: list[tuple[float, int]], step: float, most: int | None
) -> None:
    sizes = [float(size) for size, times in runs for _ in range(times)]
    settings = settings_of(step, most=most, startup=0.0)
    fleet = through_hpa(np.array(sizes), settings)
    syncs = every_sync(sizes, settings)
    for at, (requested, changes) in enumerate(zip(fleet.asked, fleet.changes, strict=True)):
        begin, end = at * step, (at + 1) * step
        standing = [each for each in syncs if each[0] <= begin + 1e-9][-1]
        inside = [each for each in syncs if begin + 1e-9 < each[0] < end - 1e-9]
        stretches = [(begin, standing[1]), *inside, (end, 0)]
        total = sum((b[0] - a[0]) * a[1] for a, b in pairwise(stretches))
        assert requested == pytest.approx(total / step)
        assert fleet.serving[at] == min(size for _, size in stretches[:-1])
        before = [each[1] for each in syncs if each[0] < begin - 1e-9][-1:] or [first_size(np.array(sizes), settings)]
        sequence = [*before, *(each[1] for each in syncs if begin - 1e-9 <= each[0] < end - 1e-9)]
        assert changes == sum(a != b for a, b in pairwise(sequence))


def test_a_change_within_the_tolerance_is_ignored() -> None:
    fleet = through_hpa(np.array([20.0] * 10 + [21.0] * 10 + [23.0] * 10), settings_of(60.0))
    assert fleet.asked[19] == 20
    assert fleet.asked[-1] == 23


def test_scale_down_waits_five_minutes_and_scale_up_does_not() -> None:
    fleet = through_hpa(np.array([4.0] * 10 + [8.0] * 3 + [4.0] * 20), settings_of(60.0, startup=0.0))
    up, down = int(np.argmax(fleet.asked >= 8)), 33 - int(np.argmax(fleet.asked[::-1] >= 8))
    # Over at 660 s, seen 30 s later, which is a sync; last requested at 810 s, and so held until 1110 s.
    assert up == 12
    assert down == pytest.approx((780 + 30 + 300) / 60, abs=1)


def test_starting_pods_do_not_serve_yet() -> None:
    fleet = through_hpa(np.array([4.0] * 10 + [8.0] * 20), settings_of(60.0, startup=180.0))
    assert int(np.argmax(fleet.serving >= 8)) - int(np.argmax(fleet.asked >= 8)) == 3


@pytest.mark.parametrize(
    ("sizes", "expected"), [([math.nan] * 10, 2), ([5.0], 5), ([0.0] * 10, 2), ([math.nan, 7.0], 7)]
)
def test_the_fleet_starts_with_the_first_size(sizes: list[float], expected: int) -> None:
    fleet = through_hpa(np.array(sizes), settings_of(60.0))
    assert set(fleet.asked) == {expected}


@given(st.integers(0, 200), st.integers(0, 2**53) | st.integers(0, 10**6), st.integers(1, 10**6))
def test_the_rule_is_that_of_the_complete_hpa(replicas: int, usage: int, target: int) -> None:
    expected = totals.average_value_replicas(replicas, usage, target, Tolerances()).replicas
    assert average_value_replicas(replicas, usage, target) == expected
