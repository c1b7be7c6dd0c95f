"""Requests are judged by the days after them."""

from __future__ import annotations

import numpy as np
import pytest

from recommender.kinds.resources.backtest.judging import JUDGED, NOW, judged_containers
from recommender.kinds.resources.backtest.policies import OURS
from recommender.kinds.resources.bounds import SizeSettings
from recommender.kinds.resources.workloads import CPU, MEMORY, ClusterFacts, PodContainer
from tests.recommender.kinds.resources.backtest.grids import STEPS_PER_DAY, grid_of

POD = PodContainer("shop", "000", "app")
GIB = 2.0**30
FACTS = ClusterFacts(requests={CPU: {POD: 0.5}, MEMORY: {POD: GIB}}, limits={MEMORY: {POD: GIB}})


def days_of(*cores: float) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return one pod that uses this much on each day, and twice as much for a quarter of the day."""
    shape = np.where(np.arange(STEPS_PER_DAY) < STEPS_PER_DAY // 4, 2.0, 1.0)
    return np.concatenate([each * shape for each in cores])[None, :]


def test_time_over_the_request_and_reserved_amounts_cover_only_judged_days() -> None:
    usage = days_of(0.1, 0.1, 0.1, 0.4, 0.4)
    [found] = judged_containers(grid_of(usage, usage * GIB), SizeSettings(), FACTS, [POD])
    assert (found.days, found.history_days) == (2, 5)
    now = found.fits[CPU][NOW]
    assert (now.over_ratio, now.reserved, now.days_over) == (0.25, 0.5, 2)
    assert now.used == pytest.approx(0.5)
    # Our request of the first of the two days is that of a quarter of its load, and that of the second fits.
    assert found.fits[CPU][OURS].over_ratio == 0.5
    assert set(found.fits[CPU]) == set(found.fits[MEMORY]) == set(JUDGED)


def test_with_too_little_history_there_is_no_verdict() -> None:
    usage = days_of(0.1, 0.1, 0.1)
    [found] = judged_containers(grid_of(usage, usage * GIB), SizeSettings(), FACTS, [POD])
    assert (found.days, found.history_days, found.fits) == (0, 3, {CPU: {}, MEMORY: {}})


def test_a_container_that_begins_late_is_judged_later_than_the_others() -> None:
    usage = np.concatenate([days_of(0.1, 0.1, 0.1, 0.1, 0.1)] * 2)
    usage[1, : 2 * STEPS_PER_DAY] = np.nan
    assert [each.days for each in judged_containers(grid_of(usage, usage * GIB), SizeSettings(), FACTS, [])] == [2, 0]


def test_without_a_present_request_the_others_are_judged() -> None:
    usage = days_of(0.1, 0.1, 0.1, 0.1)
    [found] = judged_containers(grid_of(usage, usage * GIB), SizeSettings(), ClusterFacts(), [POD])
    assert NOW not in found.fits[CPU]
    assert OURS in found.fits[CPU]


@pytest.mark.parametrize(("bytes_used", "avoided"), [(0.4 * GIB, 1), (0.1 * GIB, 0)])
def test_an_oom_kill_is_avoided_if_the_request_is_above_the_limit(bytes_used: float, avoided: int) -> None:
    cores = days_of(0.1, 0.1, 0.1, 0.1)
    memory = np.full_like(cores, bytes_used)
    facts = ClusterFacts(requests=FACTS.requests, limits={MEMORY: {POD: 0.3 * GIB}})
    [found] = judged_containers(grid_of(cores, memory, killed_on=3), SizeSettings(), facts, [POD])
    assert (found.oom_kills, found.fits[MEMORY][OURS].kills_avoided) == (1, avoided)


def test_an_oom_kill_without_a_known_limit_is_not_avoided() -> None:
    cores = days_of(0.1, 0.1, 0.1, 0.1)
    [found] = judged_containers(grid_of(cores, cores * GIB, killed_on=3), SizeSettings(), ClusterFacts(), [POD])
    assert (found.oom_kills, found.fits[MEMORY][OURS].kills_avoided) == (1, 0)
