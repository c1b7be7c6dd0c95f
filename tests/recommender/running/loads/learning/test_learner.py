"""Models learn one after another, and a failure leaves the last good parameters in use."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from recommender.child_processes.parent import Children
from recommender.kinds.predictive.choice.blend import Blend, Part
from recommender.kinds.predictive.choice.series_proof import SeriesProof
from recommender.kinds.predictive.learning import ModelTrial, SeriesVerdict
from recommender.kinds.predictive.many_series import SharedFit
from recommender.kinds.predictive.predictive_settings import ModelName
from recommender.running.loads.learned.forecast_tasks import task_of
from recommender.running.loads.learned.model_choices import Learned, LearnedModels
from recommender.running.loads.learning.learner import Learner
from recommender.running.loads.learning.learning_rules import (
    CATCH_UP_SECONDS,
    RETRY_SECONDS,
    LearningServices,
    catch_up_seconds,
)
from recommender.running.loads.load_telemetry import LoadTelemetry
from recommender.running.loads.predictions.delay_measurement import DelayMeter
from recommender.running.loads.predictions.predicting import Predictor
from tests.recommender.running.loads.learning.learning_harness import (
    AUTO,
    DAY,
    END,
    HEAVY,
    LIGHT,
    STEP,
    VERDICT,
    Harness,
    daily,
)
from tests.recommender.running.loads.load_harness import Clocks

if TYPE_CHECKING:
    from recommender.kinds.predictive.history import LoadHistory


def test_a_seasonal_model_is_chosen_for_a_load_that_rises_daily() -> None:
    harness = Harness(daily(AUTO, 9))
    harness.failing = {"holt-winters", "state-space", "quantile", "boosted", "boosted-conformal"}
    assert harness.learner.step()

    learned = harness.learned_models.get(AUTO)
    assert learned is not None
    verdict = learned.verdicts[None]
    assert verdict.model == "seasonal"
    assert "times the shortage of plain headroom at equal cost over 6.9 days; it costs as much as" in verdict.reason
    assert verdict.bill is not None
    assert verdict.bill.above_load_ratio is not None
    assert verdict.last_day.startswith("in the last day ")
    ratio = verdict.shortage_versus_headroom["seasonal"]
    assert ratio is not None
    assert ratio < 0.8

    found = Predictor(harness.learned_models).predictions(
        AUTO, DelayMeter().delays(AUTO), harness.history, {None: 100.0}, END
    )[None]
    assert (found.model, found.model_reason) == ("seasonal", verdict.reason)


def test_fits_and_choices_are_due_by_the_clock() -> None:
    harness = Harness(daily(replace(AUTO, settings=replace(AUTO.settings, model=ModelName.SEASONAL)), 4))
    ran = []
    for seconds in (0.0, 60.0, CATCH_UP_SECONDS, 2 * DAY):
        harness.clocks.monotonic += seconds
        harness.ran.clear()
        harness.learner.step()
        ran.append(list(harness.ran))

    assert ran == [["seasonal", "choice"], [], ["choice"], ["seasonal", "choice"]]


@pytest.mark.parametrize(
    ("seconds", "ran"),
    [(STEP - 60.0, ["choice"]), (2 * STEP, ["seasonal", "choice"])],
    ids=["within a step", "later by steps"],
)
def test_models_are_tried_again_once_samples_arrive_later_than_learned(seconds: float, ran: list[str]) -> None:
    harness = Harness(daily(replace(AUTO, settings=replace(AUTO.settings, model=ModelName.SEASONAL)), 4))
    assert harness.learner.step()
    harness.delays.scrape_seconds = seconds
    ran_each_time = []
    for _ in range(2):
        harness.ran.clear()
        harness.clocks.monotonic += CATCH_UP_SECONDS
        harness.learner.step()
        ran_each_time.append(list(harness.ran))

    assert ran_each_time == [ran, ["choice"]]


def test_a_failed_fit_keeps_the_last_good_parameters_and_is_retried() -> None:
    configured = replace(AUTO, settings=replace(AUTO.settings, model=ModelName.HOLT_WINTERS))
    harness = Harness(daily(configured, 4), is_choice_skipped=True)
    harness.answers = {
        "holt-winters": lambda past: ModelTrial("holt-winters", object(), 0, np.full(past.values.shape, np.nan)),
    }
    harness.learner.step()
    first = harness.learned_models.get(configured)
    assert first is not None
    harness.failing = {"holt-winters"}
    harness.clocks.monotonic += 2 * DAY
    harness.learner.step()
    second = harness.learned_models.get(configured)
    harness.failing = set()
    harness.clocks.monotonic += RETRY_SECONDS
    harness.learner.step()
    third = harness.learned_models.get(configured)

    assert second is not None
    assert third is not None
    assert second.trials["holt-winters"].parameters is first.trials["holt-winters"].parameters
    assert "killed after 60 s" in second.problems["holt-winters"]
    assert third.problems == {}
    assert third.trials["holt-winters"].parameters is not first.trials["holt-winters"].parameters
    labels = {"recommendation": "shop", "model": "holt-winters", "result": "deadline"}
    assert harness.registry.get_sample_value("tidewatch_recommender_load_model_trials_total", labels) == 1


def test_a_model_that_was_never_fitted_leaves_headroom_in_use() -> None:
    configured = replace(AUTO, settings=replace(AUTO.settings, model=ModelName.STATE_SPACE))
    harness = Harness(daily(configured, 4), failing={"state-space"})
    harness.learner.step()
    delays = DelayMeter().delays(configured)
    found = Predictor(harness.learned_models).predictions(configured, delays, harness.history, {None: 100.0}, END)[None]

    assert found.model == "headroom"
    assert found.model_reason == "state-space could not be fitted: state-space: killed after 60 s"


@pytest.mark.parametrize(("days", "is_downloaded"), [(0.1, True), (4.0, False)])
def test_nothing_is_learned_from_too_little_history(days: float, *, is_downloaded: bool) -> None:
    harness = Harness(daily(AUTO, days))
    harness.history.is_downloaded = is_downloaded

    assert not harness.learner.step()
    assert harness.ran == []


def test_only_light_models_are_tried_on_less_than_two_days() -> None:
    harness = Harness(daily(AUTO, 1.5))
    harness.learner.step()

    assert harness.ran == ["largest-hour", "conformal", "percentile", "linear", "polynomial", "trend", "choice"]


def test_a_model_that_has_not_been_judged_for_hours_is_on_trial() -> None:
    harness = Harness(daily(AUTO, 0.16))
    harness.learner.step()

    learned = harness.learned_models.get(AUTO)
    assert learned is not None
    assert learned.verdicts[None].model == "trend"
    assert "trend until a model has been judged for 3 h" in learned.verdicts[None].reason


def test_after_a_restart_the_chosen_models_are_used_at_once_and_fitted_first() -> None:
    harness = Harness(daily(AUTO, 4), is_choice_skipped=True)
    chosen = SeriesVerdict(
        "boosted",
        "auto: boosted leads",
        Blend(0.3, (Part("boosted", 0.7, 0.9), Part("linear", 0.3, 1.0))),
        proof=SeriesProof(("boosted", "linear"), b""),
    )
    harness.learned_models.put(AUTO, Learned(task_of(AUTO, DelayMeter().delays(AUTO)), verdicts={None: chosen}))
    fits = {"boosted": SharedFit((0,), (object(),))}
    seen: list[Learned | None] = []

    def trial(past: LoadHistory) -> ModelTrial:
        seen.append(harness.learned_models.get(AUTO))
        return ModelTrial("", None, 0, np.full(past.values.shape, np.nan))

    harness.answers = {"restart": lambda _past: fits, **dict.fromkeys({*HEAVY, *LIGHT}, trial)}
    harness.learner.step()
    assert harness.ran[:2] == ["restart", "largest-hour"]
    assert seen[0] is not None
    assert seen[0].verdicts == {None: chosen}
    assert seen[0].has("boosted")
    assert seen[0].parameters("boosted") is fits["boosted"].parameters
    assert harness.proofs == [(chosen.proof,)], "what was proven is gone on with"


def test_after_a_restart_the_models_in_use_are_fitted_before_any_model_is_tried() -> None:
    """A trial takes a minute of a core, so the last of many entries would have waited for all others."""
    needs = [replace(AUTO, name=name) for name in ("first", "second", "third")]
    harness = Harness(daily(AUTO, 4), is_choice_skipped=True)
    chosen = SeriesVerdict("boosted", "auto: boosted leads", Blend(0.3, (Part("boosted", 1.0, 0.9),)))
    for each in needs[:2]:
        harness.learned_models.put(each, Learned(task_of(each, DelayMeter().delays(each)), verdicts={None: chosen}))
    fits = {"boosted": SharedFit((0,), (object(),))}
    harness.answers = {
        "restart": lambda _past: fits,
        **dict.fromkeys({*HEAVY, *LIGHT}, lambda past: ModelTrial("", None, 0, np.full(past.values.shape, np.nan))),
    }
    learner = harness.learner_of(tuple(daily(each, 4) for each in needs))
    learner.step()
    assert harness.ran[:3] == ["restart", "restart", "largest-hour"]
    second = harness.learned_models.get(needs[1])
    assert second is not None
    assert second.has("boosted")

    for _ in range(5):
        learner.step()
    assert harness.ran.count("restart") == 2
    assert harness.ran.count("choice") == 3


def test_a_recommendation_that_cannot_learn_does_not_block_others(caplog: pytest.LogCaptureFixture) -> None:
    good = replace(AUTO, name="good", settings=replace(AUTO.settings, model=ModelName.SEASONAL))
    harness = Harness(daily(AUTO, 3), is_choice_skipped=True)
    histories = (harness.history, daily(good, 3))
    harness.answers = {"linear": lambda _: 1 / 0}
    harness.learner_of(histories).step()

    assert harness.learned_models.get(good) is not None
    assert harness.learned_models.get(AUTO) is None
    assert len(caplog.records) == 1


def test_a_process_that_is_ending_reports_no_failed_fit(caplog: pytest.LogCaptureFixture) -> None:
    children = Children(CollectorRegistry(), "t", most=1)
    children.close()
    history, learned_models = daily(AUTO, 3), LearnedModels()
    telemetry = LoadTelemetry(CollectorRegistry())
    services = LearningServices(DelayMeter(), learned_models, children.run, telemetry, Clocks(END).clock())
    learner = Learner(lambda: (history,), services)

    assert not learner.step()
    assert learned_models.get(AUTO) is None
    assert caplog.records == []


def test_children_fit_models_that_a_separate_process_can_load() -> None:
    children = Children(CollectorRegistry(), "t", most=1)
    configured = replace(AUTO, settings=replace(AUTO.settings, model=ModelName.SEASONAL))
    history, learned_models = daily(configured, 3), LearnedModels()
    telemetry = LoadTelemetry(CollectorRegistry())
    services = LearningServices(DelayMeter(), learned_models, children.run, telemetry, Clocks(END).clock())
    Learner(lambda: (history,), services).step()

    learned = learned_models.get(configured)
    assert learned is not None
    assert learned.problems == {}
    assert learned.verdicts[None].model == "seasonal"


@pytest.mark.parametrize(
    ("model", "is_fitted", "consequence"),
    [
        ("holt-winters", True, "its last good parameters stay in use"),
        ("holt-winters", False, "it takes no part until it is fitted"),
        ("seasonal", True, "its last record stays in use"),
        ("seasonal", False, "it has no record until it is tried again"),
    ],
)
def test_the_log_says_what_is_used_instead_of_a_model_that_cannot_be_fitted(
    model: str, consequence: str, caplog: pytest.LogCaptureFixture, *, is_fitted: bool
) -> None:
    configured = replace(AUTO, settings=replace(AUTO.settings, model=ModelName(model)))
    harness = Harness(daily(configured, 4), is_choice_skipped=True)
    harness.answers = {model: lambda past: ModelTrial(model, object(), 0, np.full(past.values.shape, np.nan))}
    if is_fitted:
        harness.learner.step()
    harness.failing = {model}
    harness.clocks.monotonic += 2 * DAY
    harness.learner.step()

    (message,) = caplog.messages
    assert message.endswith(f"{model}: killed after 60 s: {consequence}")


def test_a_failed_trial_after_a_restart_leaves_the_renewed_fit_in_use() -> None:
    configured = replace(AUTO, settings=replace(AUTO.settings, model=ModelName.HOLT_WINTERS))
    chosen = SeriesVerdict("holt-winters", "it is configured", Blend(0.1, (Part("holt-winters", 1.0, 1.0),)))
    harness = Harness(daily(configured, 4), failing={"holt-winters"})
    task = task_of(configured, DelayMeter().delays(configured))
    harness.learned_models.put(configured, Learned(task, verdicts={None: chosen}))
    harness.learner.step()

    assert harness.ran == ["restart", "holt-winters", "choice"]
    learned = harness.learned_models.get(configured)
    assert learned is not None
    assert "killed after 60 s" in learned.problems["holt-winters"]
    assert learned.has("holt-winters")
    delays = DelayMeter().delays(configured)
    found = Predictor(harness.learned_models).predictions(configured, delays, harness.history, {None: 100.0}, END)[None]
    assert found.model == "holt-winters"


@pytest.mark.parametrize(("recommendations", "seconds"), [(1, 600.0), (10, 600.0), (20, 1200.0), (1000, 3600.0)])
def test_models_are_chosen_more_often_if_there_are_few_recommendations(recommendations: int, seconds: float) -> None:
    assert catch_up_seconds(recommendations) == seconds


def test_a_failed_comparison_after_a_restart_loses_neither_trials_nor_proofs() -> None:
    harness = Harness(daily(AUTO, 1), is_choice_skipped=True, failing={"choice"})
    chosen = replace(VERDICT, proof=SeriesProof(("linear",), b""))
    harness.learned_models.put(AUTO, Learned(task_of(AUTO, DelayMeter().delays(AUTO)), verdicts={None: chosen}))
    harness.learner.step()
    harness.failing.clear()
    harness.clocks.pass_seconds(600.0)
    assert harness.learner.step()

    assert harness.proofs == [(chosen.proof,), (chosen.proof,)]
    learned = harness.learned_models.get(AUTO)
    assert learned is not None
    assert learned.verdicts == {None: VERDICT}
    assert learned.has("linear")
