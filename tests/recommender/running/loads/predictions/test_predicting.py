"""Each prediction names its model, and why another model is not used."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from recommender.kinds.predictive.choice.auto import configured_capacity
from recommender.kinds.predictive.choice.blend import Blend, Part
from recommender.kinds.predictive.current_forecast import with_current
from recommender.kinds.predictive.learning import SeriesVerdict, verdict_on
from recommender.kinds.predictive.many_series import SharedFit
from recommender.kinds.predictive.models.holt_winters import HOLT_WINTERS
from recommender.kinds.predictive.predictive_settings import ForEach, ModelName
from recommender.kinds.predictive.simulation.bill import Bill
from recommender.running.loads.histories.load_histories import TargetHistory
from recommender.running.loads.histories.target_loads import target_of
from recommender.running.loads.learned.forecast_tasks import task_of
from recommender.running.loads.learned.model_choices import Learned, LearnedModels
from recommender.running.loads.predictions.blending import ModelForecast, prediction_of
from recommender.running.loads.predictions.delay_measurement import DelayMeter
from recommender.running.loads.predictions.forecast_limits import KnownLoads, limits_of
from recommender.running.loads.predictions.predicting import Predictor
from tests.recommender.running.loads.load_harness import need
from tests.recommender.running.loads.predictions.rising_load import START, STEP, predicted, rising

if TYPE_CHECKING:
    from recommender.running.loads.histories.target_loads import Target
    from recommender.running.loads.load_needs import LoadNeed


def test_a_linear_forecast_reaches_until_new_capacity_can_serve() -> None:
    wanted = need("load", model=ModelName.LINEAR, history_seconds=3600.0)
    found, task = predicted(wanted), task_of(wanted, DelayMeter().delays(wanted))

    assert found.model == "linear"
    assert found.load.at == START + 1800 + task.lead_seconds
    rising_to = 2800 + task.lead_seconds + task.window_seconds
    assert found.load.quantiles["0.5"] == pytest.approx(rising_to, rel=0.02)
    assert found.load.quantiles["0.5"] <= found.load.quantiles["0.95"] == found.load.predicted


def test_a_season_does_not_change_a_linear_forecast_or_its_time() -> None:
    usual = predicted(need("load", model=ModelName.LINEAR, history_seconds=3600.0))
    found = predicted(need("load", model=ModelName.LINEAR, history_seconds=3600.0, season_seconds=7200.0))

    assert found.load.at == usual.load.at
    assert found.load.quantiles["0.5"] == pytest.approx(usual.load.quantiles["0.5"])


@pytest.mark.parametrize(("model", "ratio"), [(ModelName.HEADROOM, 1.2), (ModelName.REACTIVE, 1.0)])
def test_models_of_the_present_need_no_history(model: ModelName, ratio: float) -> None:
    wanted = need("load", model=model, headroom_ratio=0.2)
    found = Predictor(LearnedModels()).predictions(wanted, DelayMeter().delays(wanted), None, {None: 50.0}, START)[None]

    assert found.model == model
    assert found.load.predicted == pytest.approx(50.0 * ratio)


def test_a_load_without_history_has_headroom_and_a_reason() -> None:
    wanted = need("load", model=ModelName.POLYNOMIAL, headroom_ratio=0.2)
    found = Predictor(LearnedModels()).predictions(wanted, DelayMeter().delays(wanted), None, {None: 50.0}, START)[None]

    assert found.model == "headroom"
    assert found.load.predicted == 60.0
    assert found.model_reason == "polynomial has no forecast from the last samples"


def test_auto_follows_an_evident_rise_until_models_have_been_compared() -> None:
    wanted = need("load", model=ModelName.AUTO, history_seconds=3600.0)
    found, task = predicted(wanted), task_of(wanted, DelayMeter().delays(wanted))

    assert found.model == "trend"
    assert "not been compared" in found.model_reason
    assert found.load.predicted is not None
    assert found.load.predicted >= 2800 + task.lead_seconds


def test_auto_with_a_budget_has_headroom_until_models_have_been_compared() -> None:
    found = predicted(need("load", model=ModelName.AUTO, history_seconds=3600.0, budget_ratio=0.05))

    assert found.model == "headroom"
    assert "not been compared" in found.model_reason


def test_auto_follows_a_rise_of_ten_minutes_on_the_grid_of_two_weeks() -> None:
    wanted = need("load", model=ModelName.AUTO)
    history, now = rising(wanted, minutes=10)
    delays = DelayMeter().delays(wanted)
    found = Predictor(LearnedModels()).predictions(wanted, delays, history, {None: 1600.0}, now)[None]

    assert found.model == "trend"
    assert found.load.predicted is not None
    assert found.load.predicted > 1.1 * 1600


def test_auto_has_headroom_if_nothing_rises_and_no_models_have_been_compared() -> None:
    wanted = need("load", model=ModelName.AUTO, history_seconds=3600.0)
    history = TargetHistory(wanted, 1)
    for poll in range(180):
        history.note({None: 1000.0}, START + poll * STEP)
    delays = DelayMeter().delays(wanted)
    found = Predictor(LearnedModels()).predictions(wanted, delays, history, {None: 1000.0}, START + 1800.0)[None]

    assert found.model == "headroom"
    assert found.load.predicted == pytest.approx(1100.0)
    assert found.model_reason.endswith("not been compared on this load yet; trend sees no evident rise")


def test_the_choice_that_auto_learned_is_used() -> None:
    wanted = need("load", model=ModelName.AUTO, history_seconds=3600.0)
    learned_models = LearnedModels()
    verdict = SeriesVerdict(
        "headroom", "it was best", Blend(0.5), Bill(0.5, 0.62), {"linear": 1.2, "seasonal": None}, "no shortage"
    )
    learned_models.put(wanted, Learned(task_of(wanted, DelayMeter().delays(wanted)), verdicts={None: verdict}))
    found = predicted(wanted, learned_models)

    assert found.load.predicted == pytest.approx(1.5 * 2800)
    assert (found.model_reason, found.last_day) == ("it was best", "no shortage")
    assert found.shortage_versus_headroom == {"linear": 1.2, "seasonal": None}
    assert (found.cost_above_load_ratio, found.cost_as_headroom_ratio) == (0.62, 0.5)


def learned_blend(wanted: LoadNeed, *parts: Part) -> LearnedModels:
    learned_models = LearnedModels()
    blend = Blend(0.5, parts)
    verdict = SeriesVerdict(blend.leader, "auto: it leads", blend)
    learned_models.put(wanted, Learned(task_of(wanted, DelayMeter().delays(wanted)), verdicts={None: verdict}))
    return learned_models


def test_a_blend_adds_the_room_of_each_part_by_its_weight_and_scale() -> None:
    wanted = need("load", model=ModelName.AUTO, history_seconds=3600.0)
    room = (
        predicted(replace(wanted, settings=replace(wanted.settings, model=ModelName.LINEAR))).load.predicted or 0
    ) - 2800
    found = predicted(wanted, learned_blend(wanted, Part("linear", 0.8, 1.5)))

    assert found.model == "linear"
    assert found.load.predicted == pytest.approx(2800 + 0.8 * 1.5 * room + 0.2 * 0.5 * 2800)


def test_headroom_of_the_same_bill_replaces_a_model_that_cannot_act() -> None:
    wanted = need("load", model=ModelName.AUTO, history_seconds=3600.0)
    found = predicted(wanted, learned_blend(wanted, Part("seasonal", 0.7, 1.0)))

    assert found.model == "headroom"
    assert found.model_reason == "seasonal needs 2 days of history, has 30 min"
    assert found.load.predicted == pytest.approx(1.5 * 2800)


def test_other_models_replace_one_whose_fit_was_lost_by_a_restart() -> None:
    wanted = need("load", model=ModelName.AUTO, history_seconds=4 * 3600.0, season_seconds=3600.0)
    history, now = rising(wanted, minutes=180)
    delays = DelayMeter().delays(wanted)
    loads: dict[Target, float] = {None: 2800.0}
    fitted = Predictor(learned_blend(wanted, Part("linear", 0.8, 1.5)))
    restarted = Predictor(learned_blend(wanted, Part("linear", 0.2, 1.5), Part("quantile", 0.6, 1.0)))
    expected = fitted.predictions(wanted, delays, history, loads, now)[None]
    found = restarted.predictions(wanted, delays, history, loads, now)[None]

    assert found.model == "linear"
    assert found.model_reason == "quantile is being fitted for the first time"
    assert found.load.predicted == pytest.approx(expected.load.predicted)


def test_a_target_added_since_the_fit_has_headroom_and_others_keep_their_forecast() -> None:
    few = ForEach("namespace", "deployment", max_targets=24)
    wanted = need("load", model=ModelName.HOLT_WINTERS, for_each=few, history_seconds=4 * 3600.0, season_seconds=3600.0)
    old, new = (target_of({"namespace": "shop", "deployment": name}, few) for name in ("old", "new"))
    history, now = rising(wanted, minutes=180, targets=(old, new))
    delays = DelayMeter().delays(wanted)
    task = task_of(wanted, delays)
    fit = SharedFit((0,), (HOLT_WINTERS.fit(history.history((old,), now), task),))
    learned_models = LearnedModels()
    learned_models.put(wanted, Learned(task, (old,), shared={"holt-winters": fit}))
    found = Predictor(learned_models).predictions(wanted, delays, history, {old: 2800.0, new: 2800.0}, now)

    assert found[old].model == "holt-winters"
    assert found[new].model == "headroom"
    assert found[new].model_reason == "holt-winters is fitted to this target with the next fit"
    assert found[new].load.predicted == pytest.approx(1.1 * 2800)


def test_headroom_replaces_a_model_without_history_beside_one_that_can_act() -> None:
    wanted = need("load", model=ModelName.AUTO, history_seconds=3600.0)
    expected = predicted(wanted, learned_blend(wanted, Part("linear", 0.2, 1.5)))
    found = predicted(wanted, learned_blend(wanted, Part("linear", 0.2, 1.5), Part("seasonal", 0.6, 1.0)))

    assert found.model == "headroom"
    assert found.load.predicted == expected.load.predicted


def test_a_blend_is_bounded_as_each_of_its_parts_is() -> None:
    wanted = need("load", model=ModelName.AUTO, history_seconds=3600.0, max_over_history=1.1)
    found = predicted(wanted, learned_blend(wanted, Part("linear", 0.9, 3.0)))

    assert found.load.predicted == pytest.approx(1.1 * 2800)
    assert found.bound is not None
    assert found.bound.forecast > 1.1 * 2800
    assert "linear" in found.bound.models


@pytest.mark.parametrize(("load", "most"), [(2800.0, 1.05 * 2800), (100.0, 1.05 * 2485.0)])
def test_a_blend_grows_no_more_than_each_of_its_parts_may(load: float, most: float) -> None:
    """A single quiet sample hardly lowers the limit, since the mean of the last minutes counts then."""
    wanted = need("load", model=ModelName.AUTO, history_seconds=3600.0, max_growth=1.05)
    found = predicted(wanted, learned_blend(wanted, Part("linear", 0.9, 3.0)), load)

    assert found.load.predicted == found.load.quantiles["0.95"]
    assert found.load.predicted == pytest.approx(most, rel=0.01)
    assert found.before_growth_limit is not None
    assert found.before_growth_limit > most


def test_headroom_of_a_large_bill_stays_within_the_configured_growth() -> None:
    wanted = need("load", model=ModelName.AUTO, history_seconds=3600.0, max_growth=1.2)

    assert predicted(wanted, learned_blend(wanted)).load.predicted == pytest.approx(1.2 * 2800)


def test_the_configured_growth_limits_headroom_without_history_and_in_a_blend() -> None:
    wanted = need("load", model=ModelName.AUTO, history_seconds=3600.0, max_growth=1.05)
    delays = DelayMeter().delays(wanted)
    blend = Blend(0.01, (Part("seasonal", 1.0, 1.0),))
    verdict = SeriesVerdict("seasonal", "it was best", blend)
    task = task_of(wanted, delays)
    by_model: dict[str, dict[Target, ModelForecast]] = {"seasonal": {None: ModelForecast(math.nan, math.nan)}}
    history, now = rising(wanted)
    for past in (None, history):
        limits = limits_of(wanted.settings, task, KnownLoads(past, now, {None: 2800.0}), by_model, {None: verdict})
        found = prediction_of(verdict, {"seasonal": by_model["seasonal"][None]}, limits.get(None), 2800.0, task, now)
        assert found.load.predicted == pytest.approx(1.05 * 2800)


def test_the_default_growth_limits_a_configured_trend_but_not_headroom() -> None:
    wanted = need("load", model=ModelName.LINEAR, history_seconds=3600.0, headroom_ratio=1.5, max_over_history=10.0)
    history, now = rising(wanted)
    delays = DelayMeter().delays(wanted)
    learned_models = learned_blend(wanted, Part("linear", 1.0, 30.0))
    found = Predictor(learned_models).predictions(wanted, delays, history, {None: 1000.0}, now)[None]
    without = Predictor(learned_models).predictions(wanted, delays, None, {None: 1000.0}, now)[None]

    assert found.load.predicted == pytest.approx(2 * 2575)
    assert without.model == "headroom"
    assert without.load.predicted is not None
    assert without.load.predicted > 2500


@pytest.mark.parametrize("upper", [9000.0, 1200.0, math.nan])
@pytest.mark.parametrize("written", [None, 1.05, 3.0])
@pytest.mark.parametrize("model", ["reactive", "headroom", "seasonal", "percentile", "linear", "holt-winters"])
def test_a_configured_model_predicts_the_same_capacity_as_its_backtest(
    model: str, written: float | None, upper: float
) -> None:
    wanted = need("load", model=ModelName(model), history_seconds=3600.0, max_growth=written, max_over_history=10.0)
    history, now = rising(wanted)
    task = task_of(wanted, DelayMeter().delays(wanted))
    verdict = verdict_on(model, "it is configured", 0.0 if model == "reactive" else 0.1)
    by_model: dict[str, dict[Target, ModelForecast]] = {
        part.model: {None: ModelForecast(upper, upper)} for part in verdict.blend.parts
    }
    limits = limits_of(wanted.settings, task, KnownLoads(history, now, {None: 1000.0}), by_model, {None: verdict})
    found = prediction_of(
        verdict, {name: each[None] for name, each in by_model.items()}, limits.get(None), 1000.0, task, now
    )

    past = with_current(history.history((None,), now), np.array([1000.0]))
    forecasts = np.full(past.values.shape, upper if by_model else math.nan)
    assert found.load.predicted == pytest.approx(configured_capacity(model, past, forecasts, task)[0, -1])
