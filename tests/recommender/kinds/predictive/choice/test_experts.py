"""What a replica is worth, by which costs that differ are made comparable."""

from __future__ import annotations

import numpy as np
import pytest

from recommender.kinds.predictive.choice.auto import PlayedChoices
from recommender.kinds.predictive.choice.experts import LEAST_SHORT_STEPS_A_DAY, usual_of, worth_of_replica
from recommender.kinds.predictive.choice.shortage_sums import TAU, Family, ShortageScales
from recommender.kinds.predictive.history import DAY_SECONDS
from recommender.kinds.predictive.models.conformal import CONFORMAL, LARGEST_HOUR
from recommender.kinds.predictive.rolling_forecasts import rolling_forecasts
from recommender.kinds.predictive.simulation.serving import FleetSettings
from tests.recommender.kinds.predictive.choice.auto_runs import FLEET, RARE_FITS, TASK
from tests.recommender.kinds.predictive.waves import DAY_STEPS, bursts_every_day, with_values


@pytest.mark.parametrize(
    ("before", "today", "worth"),
    [
        pytest.param(10.0, 10.0, 1.0, id="as ever"),
        pytest.param(10.0, 80.0, 0.35, id="after a rise"),
        pytest.param(10.0, 15.0, 1.0, id="a working day after days off"),
        pytest.param(10.0, 5.0, 1.0, id="after a fall"),
        pytest.param(10.0, 0.0, 1.0, id="silent"),
        pytest.param(0.0, 0.0, 1.0, id="always silent"),
    ],
)
def test_a_replica_is_worth_less_after_a_rise_of_the_load(before: float, today: float, worth: float) -> None:
    load = np.cumsum([0.0, *[before] * 6, today])[:, np.newaxis]
    assert worth_of_replica(load, 0, 7, 1).tolist() == [pytest.approx(worth)]


def test_a_replica_has_its_full_worth_before_the_first_decision() -> None:
    assert worth_of_replica(np.ones((1, 2)), 0, 0, 144).tolist() == [1.0, 1.0]


def test_a_replica_keeps_its_worth_until_a_whole_week_is_known() -> None:
    load = np.cumsum([0.0, *[10.0] * 5, 80.0])[:, np.newaxis]
    assert worth_of_replica(load, 0, 6, 1).tolist() == [1.0]


@pytest.mark.parametrize("ratio", [0.05, 0.1])
def test_a_saved_replica_is_worth_nothing_where_headroom_is_never_short(ratio: float) -> None:
    load = np.tile(np.repeat([100.0, 108.0], DAY_STEPS // 24), 24)
    scales = ShortageScales(load, np.full(len(load), np.inf), FleetSettings(600.0, 600.0, 1.0), every=1)
    ratios = np.array([0.0, 0.035, 0.05, 0.07, 0.085, 0.1, 0.15])
    day = Family(ratios, scales.family(ratios[:, np.newaxis] * load)).stretch(0, DAY_STEPS - 1)
    usual = usual_of(day, np.array(ratio), DAY_SECONDS, np.array(LEAST_SHORT_STEPS_A_DAY), np.array(1.0))
    is_ever_short = ratio < load.max() / load.min() - 1
    assert (day.at(ratio)[TAU] > 0) == is_ever_short
    assert (usual.price > 0) == is_ever_short


def test_savings_after_a_rise_of_the_load_do_not_prove_a_model() -> None:
    """A walk that stands still for three days at five times its load has no shortages, but rules save replicas."""
    steps = np.random.default_rng(1).normal(0.0, 0.04, 16 * DAY_STEPS)
    walk = np.cumsum(steps) - np.linspace(0.0, steps.sum(), len(steps))
    load = 100.0 * np.exp(np.clip(walk, -0.7, 0.7))
    load[9 * DAY_STEPS : 12 * DAY_STEPS] = 500.0
    load[12 * DAY_STEPS :] *= 5
    history = with_values(bursts_every_day(16), load[np.newaxis])
    forecasts = {model.name: rolling_forecasts(model, history, TASK, RARE_FITS) for model in (CONFORMAL, LARGEST_HOUR)}
    acting = PlayedChoices(history, forecasts, TASK, FLEET).decided.acting
    assert not acting[: 12 * DAY_STEPS, 0, :-1].any()
