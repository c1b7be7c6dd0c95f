"""A mixture that continues from a former one's proof decides as one that never ended."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from recommender.kinds.predictive.choice.auto import PlayedChoices
from recommender.kinds.predictive.choice.options import ChoiceOptions
from recommender.kinds.predictive.choice.own_record import FIGURES
from recommender.kinds.predictive.choice.series_proof import SeriesProof, proof_of
from recommender.kinds.predictive.forecast import Forecasts, ForecastTask
from recommender.kinds.predictive.history import LoadHistory
from recommender.kinds.predictive.learning import REPLAYED_SECONDS
from recommender.kinds.predictive.simulation.serving import FleetSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recommender.kinds.predictive.arrays import FloatArray

STEP_SECONDS = 1800.0
DAY_STEPS = 48
FLEET = FleetSettings(STEP_SECONDS, startup_seconds=600.0, load_per_replica=20.0)
TASK = ForecastTask(lead_seconds=3600.0, window_seconds=1800.0)
OPTIONS = ChoiceOptions(decide_seconds=3600.0)
ROUNDING = 1e-9
"""Sums over the same days that begin at another step differ only by the rounding of floats."""


def random_loads(rng: np.random.Generator, days: int) -> LoadHistory:
    """Return a cycle, a walk, and a load that is silent at random, with gaps; the first step is not a decision."""
    day = np.arange(days * DAY_STEPS) / DAY_STEPS
    cycle = 1000 + rng.uniform(200, 800) * np.sin(2 * np.pi * (day - rng.uniform(0, 1)))
    walk = 1000 * np.exp(np.clip(np.cumsum(rng.normal(0, 0.02, len(day))), -2, 2))
    silent = np.where(rng.random(len(day)) < 0.1, 0.0, cycle)
    loads = np.stack([cycle, walk, silent]) * rng.lognormal(0, 0.05, (3, len(day)))
    loads[rng.random(loads.shape) < 0.01] = np.nan
    return LoadHistory(1_699_999_200.0 + STEP_SECONDS, STEP_SECONDS, loads)


def random_forecasts(history: LoadHistory, rng: np.random.Generator) -> dict[str, FloatArray]:
    """Return forecasts: one knows yesterday, some add noise, one begins late, and one follows a rise."""
    load = history.values
    yesterday = np.full_like(load, np.nan)
    yesterday[:, 2 * DAY_STEPS :] = load[:, DAY_STEPS + 2 : 2 - DAY_STEPS] * rng.uniform(1.0, 1.4)
    late = load * rng.lognormal(0.2, 0.1, load.shape)
    late[:, : int(rng.uniform(9, 10) * DAY_STEPS)] = np.nan
    rise = np.where(rng.random(load.shape) < 0.05, load * 1.3, np.nan)
    noise = {name: load * rng.lognormal(0.3, 0.2, load.shape) for name in ("linear", "percentile")}
    return {"seasonal": yesterday, "boosted": late, "trend": rise, **noise}


def played(
    history: LoadHistory,
    uppers: dict[str, FloatArray],
    begin: int,
    end: int,
    task: ForecastTask,
    proofs: Sequence[SeriesProof | None] = (),
) -> PlayedChoices:
    seconds = history.start_seconds + begin * STEP_SECONDS
    some = LoadHistory(seconds, STEP_SECONDS, history.values[:, begin:end])
    # The bound of a longer history.
    limits = 1.5 * np.fmax.accumulate(np.nan_to_num(history.values), axis=1)[:, begin:end]
    forecasts = {name: Forecasts(upper[:, begin:end], upper[:, begin:end]) for name, upper in uppers.items()}
    return PlayedChoices(some, forecasts, task, FLEET, limits, OPTIONS, proofs)


@pytest.mark.parametrize(("seed", "budget"), [(1, None), (2, None), (4, 0.3)])
def test_restarts_at_random_moments_do_not_change_verdicts(seed: int, budget: float | None) -> None:
    rng = np.random.default_rng(seed)
    history, task = random_loads(rng, 11), replace(TASK, budget_ratio=budget)
    uppers, window = random_forecasts(history, rng), int(REPLAYED_SECONDS / STEP_SECONDS)
    proofs: Sequence[SeriesProof | None] = ()
    end, ends = int(8.2 * DAY_STEPS), []
    while end < history.steps:
        ends.append(end)
        end += int(rng.integers(1, 8 * DAY_STEPS // 24))
    for end in ends:
        # From the first restart on each mixture sees the last days alone, which begin anywhere.
        found = played(history, uppers, max(0, end - window), end, task, proofs)
        proofs = found.mixture.proofs
    whole = played(history, uppers, 0, ends[-1], task)
    last = DAY_STEPS // whole.every
    assert (whole.decided.acting[-last:, :, :-1] > 0).any(), "models act"
    for name in ("acting", "weights", "sizes", "ratios"):
        resumed, expected = (getattr(each.decided, name)[-last:] for each in (found, whole))
        np.testing.assert_allclose(resumed, expected, rtol=1e-6, atol=ROUNDING, err_msg=name)
    np.testing.assert_allclose(found.capacity[:, -DAY_STEPS:], whole.capacity[:, -DAY_STEPS:], rtol=1e-6)


def test_a_mixture_without_its_proof_has_different_weights() -> None:
    """Without the proof, the results that the other test compares would differ."""
    rng = np.random.default_rng(1)
    history = random_loads(rng, 11)
    uppers = random_forecasts(history, rng)
    begin = history.steps - int(REPLAYED_SECONDS / STEP_SECONDS)
    whole, anew = (played(history, uppers, first, history.steps, TASK) for first in (0, begin))
    assert np.abs(whole.decided.weights[-1] - anew.decided.weights[-1]).max() > 0.01


@pytest.mark.parametrize("is_resumed", [True, False])
def test_decisions_before_the_states_of_all_series_are_not_made_again(*, is_resumed: bool) -> None:
    rng = np.random.default_rng(5)
    history = random_loads(rng, 3)
    uppers = random_forecasts(history, rng)
    proofs = played(history, uppers, 0, history.steps, TASK).mixture.proofs
    given = proofs if is_resumed else (*proofs[:-1], None)
    weights = played(history, uppers, 0, history.steps, TASK, given).decided.weights
    resumed = len(weights) - 1 - int(np.ceil(OPTIONS.kept_seconds / OPTIONS.decide_seconds))
    assert bool((weights[:resumed] == weights[resumed]).all()) is is_resumed


def test_a_state_with_steps_of_one_second_is_resumed() -> None:
    rng = np.random.default_rng(5)
    history = random_loads(rng, 3)
    found = played(history, random_forecasts(history, rng), 0, history.steps, TASK).mixture.proofs[0]
    assert found is not None
    state = found.proven
    assert state is not None
    for seconds in (1.0, 60.0):
        proof = proof_of(found.names, replace(state, step=history.start_seconds // seconds, step_seconds=seconds))
        assert proof.proven is not None, seconds


def test_a_state_from_before_the_growth_of_odds_was_stored_is_resumed_with_none() -> None:
    rng = np.random.default_rng(5)
    history = random_loads(rng, 3)
    found = played(history, random_forecasts(history, rng), 0, history.steps, TASK).mixture.proofs[0]
    assert found is not None
    state = found.proven
    assert state is not None
    end = 8 * (6 + FIGURES)
    former = SeriesProof(found.names, found.values[: end - 8] + found.values[end:]).proven
    assert former is not None
    assert former.record[-1] == 0.0
    np.testing.assert_array_equal(former.record[:-1], state.record[:-1])
    np.testing.assert_array_equal(former.experts, state.experts)


def test_a_state_that_does_not_match_the_history_is_not_resumed() -> None:
    rng = np.random.default_rng(5)
    history = random_loads(rng, 3)
    uppers = {"seasonal": random_forecasts(history, rng)["seasonal"]}
    alone = played(history, uppers, 0, history.steps, TASK)
    found = alone.mixture.proofs[0]
    assert found is not None
    state = found.proven
    assert state is not None
    foreign = (
        SeriesProof(found.names, found.values[8:]),
        SeriesProof((), b""),
        *(
            proof_of(found.names, replace(state, **changed))
            for changed in (
                {"step": state.step + history.steps},
                {"step": 0.0},
                {"step": state.step + 1.0},
                {"step_seconds": 60.0},
                {"level": 9.0},
                {"ratio": float("nan")},
                {"experts": state.experts * 2},
                {"experts": -state.experts},
                {"record": state.record - 1},
            )
        ),
    )
    for proof in foreign:
        again = played(history, uppers, 0, history.steps, TASK, [proof, proof, proof])
        np.testing.assert_array_equal(again.decided.weights, alone.decided.weights)
