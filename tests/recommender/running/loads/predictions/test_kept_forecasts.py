"""Forecasts are kept within a grid step, renewed in parts, and used only for what they were made for."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from recommender.kinds.predictive.choice.blend import Blend
from recommender.kinds.predictive.learning import SeriesVerdict
from recommender.kinds.predictive.predictive_settings import ModelName
from recommender.running.loads.histories.load_histories import TargetHistory
from recommender.running.loads.histories.target_loads import target_of
from recommender.running.loads.learned.forecast_tasks import task_of
from recommender.running.loads.learned.model_choices import Learned, LearnedModels
from recommender.running.loads.predictions import predicting
from recommender.running.loads.predictions.delay_measurement import DelayMeter
from recommender.running.loads.predictions.predicting import Predictor
from tests.recommender.running.loads.load_harness import FOR_EACH, need
from tests.recommender.running.loads.predictions.rising_load import START, STEP, predicted, rising

if TYPE_CHECKING:
    from recommender.running.loads.histories.target_loads import Target
    from recommender.running.loads.predictions.blending import ModelForecast


def test_a_choice_learned_for_another_model_or_time_zone_is_not_used() -> None:
    wanted = need("load", model=ModelName.AUTO, history_seconds=3600.0)
    learned_models = LearnedModels()
    verdict = SeriesVerdict("headroom", "it was best", Blend(0.5))
    learned_models.put(wanted, Learned(task_of(wanted, DelayMeter().delays(wanted)), verdicts={None: verdict}))
    other_size = replace(wanted, settings=replace(wanted.settings, max_replicas=7))
    linear = replace(wanted, settings=replace(wanted.settings, model=ModelName.LINEAR))
    abroad = replace(wanted, settings=replace(wanted.settings, timezone="Europe/Berlin"))

    assert predicted(other_size, learned_models).model_reason == "it was best"
    assert predicted(linear, learned_models).model == "linear"
    assert "not been compared" in predicted(abroad, learned_models).model_reason


def test_the_forecast_for_many_series_is_kept_within_a_grid_step() -> None:
    wanted = replace(need("load", model=ModelName.LINEAR, for_each=FOR_EACH, history_seconds=3600.0))
    targets = tuple(target_of({"namespace": "shop", "deployment": f"d{each}"}, FOR_EACH) for each in range(201))
    history, now = rising(wanted, targets=targets)
    under_test, loads = Predictor(LearnedModels()), dict.fromkeys(targets, 2800.0)
    first = under_test.predictions(wanted, DelayMeter().delays(wanted), history, loads, now)
    second = under_test.predictions(
        wanted, DelayMeter().delays(wanted), history, dict.fromkeys(targets, 2700.0), now + 1.0
    )
    third = under_test.predictions(
        wanted, DelayMeter().delays(wanted), history, dict.fromkeys(targets, 2700.0), now + 30.0
    )

    uppers = [found[targets[200]].load.predicted for found in (first, second, third)]
    assert uppers[0] == uppers[1] != uppers[2]
    assert second[targets[0]].load.now == 2700.0
    assert all(upper is not None and math.isfinite(upper) for upper in uppers)


def test_each_of_many_targets_follows_its_own_evident_rise_until_models_have_been_compared() -> None:
    wanted = need("load", model=ModelName.AUTO, for_each=FOR_EACH, history_seconds=3600.0)
    targets = tuple(target_of({"namespace": "shop", "deployment": f"d{each}"}, FOR_EACH) for each in range(201))
    history, level = TargetHistory(wanted, len(targets)), dict.fromkeys(targets[1:], 1000.0)
    for poll in range(180):
        history.note({targets[0]: 1000.0 + poll * STEP, **level}, START + poll * STEP)
    loads = {targets[0]: 2800.0, **level}
    delays = DelayMeter().delays(wanted)
    found = Predictor(LearnedModels()).predictions(wanted, delays, history, loads, START + 1800.0)

    assert [found[target].model for target in targets] == ["trend"] + ["headroom"] * 200
    rising_load = found[targets[0]].load.predicted
    assert rising_load is not None
    assert rising_load > 1.1 * 2800


@pytest.mark.parametrize("ratio", [0.0, 0.3, 1.0])
def test_a_forecast_below_the_present_load_never_reaches_an_hpa(ratio: float) -> None:
    wanted = need("load", model=ModelName.LINEAR, history_seconds=3600.0, headroom_ratio=ratio)
    history = TargetHistory(wanted, 1)
    for poll in range(180):
        history.note({None: 10_000.0 - 50.0 * poll}, START + poll * STEP)
    found = Predictor(LearnedModels()).predictions(
        wanted, DelayMeter().delays(wanted), history, {None: 1050.0}, START + 180 * STEP
    )[None]

    assert found.model == "linear"
    assert found.load.predicted == found.load.quantiles["0.95"] == 1050.0
    assert 0.0 <= found.load.quantiles["0.5"] <= 1050.0


def test_a_forecast_is_raised_to_a_load_that_has_risen_within_its_grid_step() -> None:
    wanted = need("load", model=ModelName.LINEAR, for_each=FOR_EACH, history_seconds=3600.0)
    targets = tuple(target_of({"namespace": "shop", "deployment": f"d{each}"}, FOR_EACH) for each in range(201))
    history, now = rising(wanted, targets=targets)
    under_test, delays = Predictor(LearnedModels()), DelayMeter().delays(wanted)
    under_test.predictions(wanted, delays, history, dict.fromkeys(targets, 2800.0), now)
    found = under_test.predictions(wanted, delays, history, dict.fromkeys(targets, 90_000.0), now + 1.0)

    assert found[targets[0]].load.predicted == 90_000.0


def test_forecasts_of_another_query_are_not_used_after_a_reload() -> None:
    wanted = need("load", model=ModelName.LINEAR, for_each=FOR_EACH, history_seconds=3600.0)
    other = replace(wanted, settings=replace(wanted.settings, load="other"))
    targets = tuple(target_of({"namespace": "shop", "deployment": f"d{each}"}, FOR_EACH) for each in range(201))
    history, now = rising(wanted, targets=targets)
    flat = TargetHistory(other, 201)
    for poll in range(180):
        flat.note(dict.fromkeys(targets, 5.0), START + poll * STEP)
    under_test, delays = Predictor(LearnedModels()), DelayMeter().delays(wanted)
    under_test.predictions(wanted, delays, history, dict.fromkeys(targets, 2800.0), now)
    found = under_test.predictions(other, delays, flat, dict.fromkeys(targets, 5.0), now)

    assert found[targets[0]].load.predicted == pytest.approx(5.0, rel=0.2)


def test_a_model_that_fails_leaves_headroom_in_use_and_one_line_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> None:
        raise FloatingPointError("singular matrix")

    monkeypatch.setattr(predicting, "current_forecasts", fails)
    wanted = need("load", model=ModelName.LINEAR, history_seconds=3600.0)
    history, now = rising(wanted)
    under_test, delays = Predictor(LearnedModels()), DelayMeter().delays(wanted)
    found = [under_test.predictions(wanted, delays, history, {None: 2800.0}, now)[None] for _ in range(3)]

    assert {each.model for each in found} == {"headroom"}
    assert found[0].load.predicted == pytest.approx(1.1 * 2800)
    assert len(caplog.records) == 1
    assert "linear" in caplog.text


def test_forecasts_of_many_targets_are_renewed_in_parts_with_each_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    targets = tuple(target_of({"namespace": "a", "deployment": f"d{each}"}, FOR_EACH) for each in range(300))
    wanted = need("load", model=ModelName.LINEAR, for_each=FOR_EACH, history_seconds=172_800.0)
    history, made, original = TargetHistory(wanted, len(targets)), list[int](), predicting._made_now
    assert history.step_seconds == 60.0
    history.note(dict.fromkeys(targets, 100.0), START)

    def counted(*arguments: Any) -> dict[Target, ModelForecast]:  # noqa: ANN401 - handed on
        made.append(len(arguments[3]))
        return original(*arguments)

    monkeypatch.setattr(predicting, "_made_now", counted)
    predictor, delays = Predictor(LearnedModels()), DelayMeter().delays(wanted)
    begin = (START // 60 + 1.5) * 60.0
    for poll in range(8):
        loads = dict.fromkeys(targets, 100.0 + poll)
        found = predictor.predictions(wanted, delays, history, loads, begin + 10.0 * poll)
        assert {each.load.now for each in found.values()} == {100.0 + poll}
    # All at the first poll of all, and from the next step on as many as reach all of them within it.
    assert made == [300, 50, 50]
    made.clear()
    predictor.predictions(wanted, delays, history, dict.fromkeys(targets, 100.0), begin + 180.0)
    assert made == [300], "forecasts that are older than a step are not used"


@pytest.mark.parametrize(("season_seconds", "zone"), [(86_400.0, "Europe/Berlin"), (10.0, "UTC"), (604_800.0, "UTC")])
def test_the_time_zone_is_used_only_for_seasons_of_a_day(season_seconds: float, zone: str) -> None:
    wanted = need("load", model=ModelName.SEASONAL, season_seconds=season_seconds, timezone="Europe/Berlin")
    assert task_of(wanted, DelayMeter().delays(wanted)).clock.timezone == zone
