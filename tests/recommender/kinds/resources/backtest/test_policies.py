"""The requests that each recommender would have made before a day."""

from __future__ import annotations

import numpy as np
import pytest

from recommender.kinds.resources.backtest.policies import KRR, OURS, VPA, requests_before, with_least_requests
from recommender.kinds.resources.bounds import SizeSettings
from recommender.kinds.resources.workloads import CPU, MEMORY
from tests.recommender.kinds.resources import reference
from tests.recommender.kinds.resources.backtest.grids import STEPS_PER_DAY, grid_of

DEFAULTS = SizeSettings()
MIB = 2.0**20


def test_vertical_pod_autoscaler_requests_match_the_reference() -> None:
    random = np.random.default_rng(4)
    cores, memory = random.uniform(0.05, 2, (1, 3 * STEPS_PER_DAY)), random.uniform(2e7, 9e8, (1, 3 * STEPS_PER_DAY))
    found = requests_before(grid_of(cores, memory), 2, DEFAULTS)
    ages = [300.0 * step for step in reversed(range(2 * STEPS_PER_DAY))]
    samples = list(zip(cores[0, : 2 * STEPS_PER_DAY].tolist(), ages, strict=True))
    assert found[CPU][VPA][0] == pytest.approx(1.15 * reference.percentile(samples, 0.9, 0.01))
    days = memory[0, : 2 * STEPS_PER_DAY].reshape(2, STEPS_PER_DAY).max(axis=1)
    peaks = [(float(days[0]), 86_400.0), (float(days[1]), 0.0)]
    assert found[MEMORY][VPA][0] == pytest.approx(1.15 * reference.percentile(peaks, 0.9, 1e7))


def test_krr_takes_the_largest_of_all_pods() -> None:
    cores = np.array([[1.0] * 90 + [9.0] * 6 + [0.0] * 192, [2.0] * 288]).repeat(2, axis=1)
    found = requests_before(grid_of(cores, cores * MIB, pods_of_one=True), 1, DEFAULTS)
    assert found[CPU][KRR].tolist() == [2.0]
    assert found[MEMORY][KRR][0] == pytest.approx(9 * MIB * 1.15)


@pytest.mark.parametrize("resource", [CPU, MEMORY])
def test_usage_of_the_day_itself_or_later_does_not_count(resource: str) -> None:
    known = np.random.default_rng(1).uniform(0.1, 1.0, (3, 5 * STEPS_PER_DAY))
    changed = known.copy()
    changed[:, 4 * STEPS_PER_DAY :] = 900.0
    before, after = (requests_before(grid_of(each, each * MIB), 4, SizeSettings(None)) for each in (known, changed))
    for policy in (OURS, VPA, KRR):
        assert before[resource][policy].tolist() == after[resource][policy].tolist()


def test_gaps_do_not_count_and_unknown_usage_has_no_request() -> None:
    cores = np.full((2, 4 * STEPS_PER_DAY), np.nan)
    cores[0, ::7] = 0.5
    found = requests_before(grid_of(cores, cores * 1e9), 3, DEFAULTS)
    for resource in (CPU, MEMORY):
        for policy in (OURS, VPA, KRR):
            known, unknown = found[resource][policy]
            assert known > 0
            assert np.isnan(unknown)


def test_an_oom_kill_raises_our_memory_on_the_days_after_it() -> None:
    usage = np.full((1, 4 * STEPS_PER_DAY), 0.5)
    quiet, killed = (grid_of(usage, usage * 1e9, killed_on=day) for day in (None, 1))
    assert requests_before(killed, 1, DEFAULTS)[MEMORY][OURS] == requests_before(quiet, 1, DEFAULTS)[MEMORY][OURS]
    assert requests_before(killed, 2, DEFAULTS)[MEMORY][OURS] > requests_before(quiet, 2, DEFAULTS)[MEMORY][OURS]


@pytest.mark.parametrize("settings", [SizeSettings(0.01, 0.0), SizeSettings(1.0, 10.0), SizeSettings(None, 9.0)])
def test_extreme_settings_have_finite_requests(settings: SizeSettings) -> None:
    usage = np.tile([0.0, 1e-9, 999.0], 2 * STEPS_PER_DAY)[None, : 4 * STEPS_PER_DAY]
    found = with_least_requests(requests_before(grid_of(usage, usage * 1e12), 3, settings), grid_of(usage, usage))
    assert all(np.isfinite(each).all() and (each > 0).all() for those in found.values() for each in those.values())
