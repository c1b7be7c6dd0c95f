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
from tests.recommender.running.loads.learning.learning_world import AUTO, END, HEAVY, LIGHT, STEP, VERDICT, World, daily
from tests.recommender.running.loads.load_world import FOR_EACH

if TYPE_CHECKING:
    from recommender.kinds.predictive.history import LoadHistory

MANY = replace(AUTO, settings=replace(AUTO.settings, for_each=FOR_EACH))
TARGETS = tuple(target_of({"namespace": "shop", "deployment": f"d{each:03}"}, FOR_EACH) for each in range(60))


def test_each_of_many_targets_has_the_verdict_that_a_separate_entry_would_have() -> None:
    targets = TARGETS[:30]
    world = World(daily(MANY, 4, targets), failing=HEAVY)
    assert world.learner.step()
    assert world.learner.step()
    alone = World(daily(AUTO, 4), failing=HEAVY)
    alone.learner.step()

    learned, own = world.learned_models.get(MANY), alone.learned_models.get(AUTO)
    assert learned is not None
    assert own is not None
    assert world.ran == ["quantile", "boosted", "choice"]
    assert set(learned.verdicts) == set(targets)
    assert learned.verdicts[targets[0]] == own.verdicts[None]
    assert world.saved[MANY.name] == learned.verdicts
    # A load of thirty times the size is rounded to replicas less coarsely.
    assert learned.verdicts[targets[-1]].last_day != own.verdicts[None].last_day

    delays = DelayMeter().delays(MANY)
    found = Predictor(world.learned_models).predictions(MANY, delays, world.history, dict.fromkeys(targets, 100.0), END)
    assert {prediction.model for prediction in found.values()} == {"seasonal"}


def test_models_of_many_targets_are_fitted_again_once_samples_arrive_later_than_learned() -> None:
    # When the models are fitted does not depend on what the fits say, which takes seconds of processor time.
    world = World(daily(MANY, 4, TARGETS), failing=HEAVY, is_choice_skipped=True)
    world.learner.step()
    world.learner.step()
    world.delays.scrape_seconds = 2 * STEP
    world.clocks.monotonic += CATCH_UP_SECONDS
    world.ran.clear()
    world.learner.step()
    world.learner.step()

    assert world.ran == ["quantile", "boosted", "choice"]


def test_a_target_that_no_child_can_judge_does_not_prevent_verdicts_for_others() -> None:
    world = World(daily(MANY, 1.5, TARGETS))
    largest = float(world.history.rows(TARGETS, round(END / STEP) - 1, round(END / STEP)).max())

    def fails_with_the_largest(past: LoadHistory) -> list[SeriesVerdict]:
        if past.values[:, -2:].max() >= 0.99 * largest:
            raise ChildDeadlineError("choice: killed after 660 s")
        return [VERDICT] * len(past.values)

    world.answers["choice"] = fails_with_the_largest
    for _ in range(20):
        world.learner.step()
        world.clocks.monotonic += 61.0
    learned = world.learned_models.get(MANY)
    assert learned is not None
    assert set(learned.verdicts) == set(TARGETS[:59])


def test_after_a_restart_fits_for_many_targets_precede_any_trial() -> None:
    def trial_or_fits(past: LoadHistory) -> object:
        return {} if len(past.values) > 1 else ModelTrial("", None, 0, np.full(past.values.shape, np.nan))

    world = World(daily(AUTO, 4), is_choice_skipped=True)
    world.learned_models.put(
        MANY, Learned(task_of(MANY, DelayMeter().delays(MANY)), verdicts=dict.fromkeys(TARGETS, VERDICT))
    )
    world.answers = dict.fromkeys({*HEAVY, *LIGHT}, trial_or_fits)
    world.learner_of((daily(replace(AUTO, name="first"), 4), daily(MANY, 9, TARGETS))).step()
    assert world.ran[:3] == ["quantile", "boosted", "largest-hour"]
