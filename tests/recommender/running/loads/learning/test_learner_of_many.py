"""The targets of one recommendation share their fits, and each has a verdict of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from recommender.child_processes.child_errors import ChildDeadlineError
from recommender.kinds.predictive.learning import ModelTrial, SeriesVerdict
from recommender.running.loads.histories.target_loads import target_of
from recommender.running.loads.learned.forecast_tasks import task_of
from recommender.running.loads.learned.model_choices import Learned
from recommender.running.loads.learning.learning_rules import CATCH_UP_SECONDS
from recommender.running.loads.predictions.delay_measurement import DelayMeter
from recommender.running.loads.predictions.predicting import Predictor
from tests.recommender.running.loads.learning.learning_harness import (
    AUTO,
    END,
    HEAVY,
    LIGHT,
    STEP,
    VERDICT,
    Harness,
    daily,
)
from tests.recommender.running.loads.load_harness import FOR_EACH

if TYPE_CHECKING:
    from recommender.kinds.predictive.history import LoadHistory

MANY = replace(AUTO, settings=replace(AUTO.settings, for_each=FOR_EACH))
TARGETS = tuple(target_of({"namespace": "shop", "deployment": f"d{each:03}"}, FOR_EACH) for each in range(60))


def test_each_of_many_targets_has_the_verdict_that_a_separate_entry_would_have() -> None:
    targets = TARGETS[:30]
    harness = Harness(daily(MANY, 4, targets), failing=HEAVY)
    assert harness.learner.step()
    assert harness.learner.step()
    alone = Harness(daily(AUTO, 4), failing=HEAVY)
    alone.learner.step()

    learned, own = harness.learned_models.get(MANY), alone.learned_models.get(AUTO)
    assert learned is not None
    assert own is not None
    assert harness.ran == ["quantile", "boosted", "choice"]
    assert set(learned.verdicts) == set(targets)
    assert learned.verdicts[targets[0]] == own.verdicts[None]
    assert harness.saved[MANY.name] == learned.verdicts
    # A load of thirty times the size is rounded to replicas less coarsely.
    assert learned.verdicts[targets[-1]].last_day != own.verdicts[None].last_day

    delays = DelayMeter().delays(MANY)
    found = Predictor(harness.learned_models).predictions(
        MANY, delays, harness.history, dict.fromkeys(targets, 100.0), END
    )
    assert {prediction.model for prediction in found.values()} == {"seasonal"}


def test_models_of_many_targets_are_fitted_again_once_samples_arrive_later_than_learned() -> None:
    # When the models are fitted does not depend on what the fits say, which takes seconds of processor time.
    harness = Harness(daily(MANY, 4, TARGETS), failing=HEAVY, is_choice_skipped=True)
    harness.learner.step()
    harness.learner.step()
    harness.delays.scrape_seconds = 2 * STEP
    harness.clocks.monotonic += CATCH_UP_SECONDS
    harness.ran.clear()
    harness.learner.step()
    harness.learner.step()

    assert harness.ran == ["quantile", "boosted", "choice"]


def test_a_target_that_no_child_can_judge_does_not_prevent_verdicts_for_others() -> None:
    harness = Harness(daily(MANY, 1.5, TARGETS))
    largest = float(harness.history.rows(TARGETS, round(END / STEP) - 1, round(END / STEP)).max())

    def fails_with_the_largest(past: LoadHistory) -> list[SeriesVerdict]:
        if past.values[:, -2:].max() >= 0.99 * largest:
            raise ChildDeadlineError("choice: killed after 660 s")
        return [VERDICT] * len(past.values)

    harness.answers["choice"] = fails_with_the_largest
    for _ in range(20):
        harness.learner.step()
        harness.clocks.monotonic += 61.0
    learned = harness.learned_models.get(MANY)
    assert learned is not None
    assert set(learned.verdicts) == set(TARGETS[:59])


def test_after_a_restart_fits_for_many_targets_precede_any_trial() -> None:
    def trial_or_fits(past: LoadHistory) -> object:
        return {} if len(past.values) > 1 else ModelTrial("", None, 0, np.full(past.values.shape, np.nan))

    harness = Harness(daily(AUTO, 4), is_choice_skipped=True)
    harness.learned_models.put(
        MANY, Learned(task_of(MANY, DelayMeter().delays(MANY)), verdicts=dict.fromkeys(TARGETS, VERDICT))
    )
    harness.answers = dict.fromkeys({*HEAVY, *LIGHT}, trial_or_fits)
    harness.learner_of((daily(replace(AUTO, name="first"), 4), daily(MANY, 9, TARGETS))).step()
    assert harness.ran[:3] == ["quantile", "boosted", "largest-hour"]
