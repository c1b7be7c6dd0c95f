"""Models learn one after another, and what fails leaves the last good parameters in use."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from recommender.child_processes.parent import ChildDeadlineError, ChildLimits, Children
from recommender.kinds.predictive.choice.blend import Blend, Part
from recommender.kinds.predictive.learning import ModelTrial, SeriesVerdict
from recommender.kinds.predictive.predictive_settings import MOST_FITTED_TARGETS, ModelName
from recommender.running.loads.delays import DelayMeter
from recommender.running.loads.histories import TargetHistory
from recommender.running.loads.learned_models import LearnedModels
from recommender.running.loads.learning import (
    CATCH_UP_SECONDS,
    RETRY_SECONDS,
    Learner,
    catch_up_seconds,
    learning_targets,
)
from recommender.running.loads.load_telemetry import LoadTelemetry
from recommender.running.loads.predicting import Predictor
from recommender.running.loads.reading import target_of
from tests.recommender.running.loads.load_world import FOR_EACH, Clocks, need

if TYPE_CHECKING:
    from collections.abc import Callable

    from recommender.running.loads.needs import LoadNeed
    from recommender.running.loads.reading import Target

DAY = 86_400.0
STEP = 600.0
END = 1_700_000_400.0
AUTO = replace(need("load", model=ModelName.AUTO, horizon_seconds=1200.0), poll_interval_seconds=STEP)
VERDICT = SeriesVerdict("linear", "auto: it is better", Blend(0.1, (Part("linear", 1.0, 1.0),)))


def daily(wanted: LoadNeed, days: float, targets: tuple[Target, ...] = (None,)) -> TargetHistory:
    """Return a history of a load that rises every morning within an hour."""
    history, count = TargetHistory(wanted, len(targets)), int(days * DAY / STEP)
    assert history.step_seconds == STEP
    numbers = np.arange(round(END / STEP) - count + 1, round(END / STEP) + 1)
    hour = (numbers * STEP % DAY) / 3600
    values = (100 + 900 * np.clip(hour - 8, 0, 1) * (hour < 18)).astype(np.float32)
    history.note(dict.fromkeys(targets, float(values[-1])), END)
    history.restore(int(numbers[0]), np.ones(count, dtype=bool))
    factors = np.arange(1, len(targets) + 1, dtype=np.float32)[:, np.newaxis]
    history.restore_rows(int(numbers[0]), targets, values * factors)
    history.is_downloaded = True
    return history


@dataclass
class World:
    """A learner whose children are called here."""

    history: TargetHistory
    clocks: Clocks = field(default_factory=lambda: Clocks(END))
    book: LearnedModels = field(default_factory=LearnedModels)
    failing: set[str] = field(default_factory=set)
    answers: dict[str, Callable[[Any], object]] = field(default_factory=dict)
    """By name of the child: what it answers to the past of the series, in place of the real function."""
    is_choice_skipped: bool = False
    ran: list[str] = field(default_factory=list)
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    def __post_init__(self) -> None:
        telemetry = LoadTelemetry(self.registry)
        self.learner = Learner(
            lambda: (self.history,), DelayMeter(), self.book, self.run_child, telemetry, self.clocks.clock()
        )

    def run_child(
        self, name: str, function: Callable[..., Any], arguments: tuple[Any, ...], limits: ChildLimits
    ) -> Any:  # noqa: ANN401 - what the function returns
        assert limits.seconds <= 1800.0
        self.ran.append(name)
        if name in self.failing:
            raise ChildDeadlineError(f"{name}: killed after 60 s")
        if name == "choice" and self.is_choice_skipped:
            return arguments[2], tuple(VERDICT for _ in arguments[1].values)
        return self.answers[name](arguments[1]) if name in self.answers else function(*arguments)


def test_a_load_with_a_daily_rise_is_left_to_a_model_that_knows_it() -> None:
    world = World(daily(AUTO, 9))
    world.failing = {"holt-winters", "state-space", "quantile", "boosted", "boosted-conformal"}
    assert world.learner.step()

    learned = world.book.get(AUTO)
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

    found = Predictor(world.book).predictions(AUTO, DelayMeter().delays(AUTO), world.history, {None: 100.0}, END)[None]
    assert (found.model, found.model_reason) == ("seasonal", verdict.reason)


def test_what_is_due_follows_the_clock() -> None:
    world = World(daily(replace(AUTO, settings=replace(AUTO.settings, model=ModelName.SEASONAL)), 4))
    ran = []
    for seconds in (0.0, 60.0, CATCH_UP_SECONDS, 2 * DAY):
        world.clocks.monotonic += seconds
        world.ran.clear()
        world.learner.step()
        ran.append(list(world.ran))

    assert ran == [["seasonal", "choice"], [], ["choice"], ["seasonal", "choice"]]


def test_a_fit_that_fails_keeps_the_last_good_parameters_and_is_tried_again() -> None:
    configured = replace(AUTO, settings=replace(AUTO.settings, model=ModelName.HOLT_WINTERS))
    world = World(daily(configured, 4), is_choice_skipped=True)
    world.answers = {
        "holt-winters": lambda past: ModelTrial("holt-winters", object(), 0, np.full(past.values.shape, np.nan)),
    }
    world.learner.step()
    first = world.book.get(configured)
    assert first is not None
    world.failing = {"holt-winters"}
    world.clocks.monotonic += 2 * DAY
    world.learner.step()
    second = world.book.get(configured)
    world.failing = set()
    world.clocks.monotonic += RETRY_SECONDS
    world.learner.step()
    third = world.book.get(configured)

    assert second is not None
    assert third is not None
    assert second.trials["holt-winters"].parameters is first.trials["holt-winters"].parameters
    assert "killed after 60 s" in second.problems["holt-winters"]
    assert third.problems == {}
    assert third.trials["holt-winters"].parameters is not first.trials["holt-winters"].parameters
    labels = {"recommendation": "shop", "model": "holt-winters", "result": "deadline"}
    assert world.registry.get_sample_value("tidewatch_recommender_load_model_trials_total", labels) == 1


def test_a_model_that_was_never_fitted_leaves_headroom_in_use() -> None:
    configured = replace(AUTO, settings=replace(AUTO.settings, model=ModelName.STATE_SPACE))
    world = World(daily(configured, 4), failing={"state-space"})
    world.learner.step()
    delays = DelayMeter().delays(configured)
    found = Predictor(world.book).predictions(configured, delays, world.history, {None: 100.0}, END)[None]

    assert found.model == "headroom"
    assert found.model_reason == "state-space could not be fitted: state-space: killed after 60 s"


@pytest.mark.parametrize(("days", "is_downloaded"), [(0.1, True), (4.0, False)])
def test_nothing_is_learned_from_too_little(days: float, *, is_downloaded: bool) -> None:
    world = World(daily(AUTO, days))
    world.history.is_downloaded = is_downloaded

    assert not world.learner.step()
    assert world.ran == []


def test_before_two_days_only_the_light_models_are_tried() -> None:
    world = World(daily(AUTO, 1.5))
    world.learner.step()

    assert world.ran == ["largest-hour", "conformal", "percentile", "linear", "polynomial", "choice"]


def test_a_model_that_has_not_been_judged_for_hours_is_on_trial() -> None:
    world = World(daily(AUTO, 0.16))
    world.learner.step()

    learned = world.book.get(AUTO)
    assert learned is not None
    assert learned.verdicts[None].model == "headroom"
    assert "headroom until a model has been judged for 3 h" in learned.verdicts[None].reason


def test_of_many_targets_some_of_all_sizes_stand_for_the_others() -> None:
    targets = tuple(target_of({"namespace": "shop", "deployment": f"d{each:03}"}, FOR_EACH) for each in range(60))
    many = replace(AUTO, settings=replace(AUTO.settings, for_each=FOR_EACH))
    world = World(daily(many, 1.5, targets), is_choice_skipped=True)
    chosen = learning_targets(world.history, END)
    world.learner.step()

    assert len(chosen) == MOST_FITTED_TARGETS
    assert {targets[0], targets[59]} <= set(chosen)
    learned = world.book.get(many)
    assert learned is not None
    (other, *_) = set(targets) - set(chosen)
    verdict = learned.verdict(other)
    assert verdict is not None
    assert verdict.reason.endswith("of 60 targets on which models were compared")


def test_a_recommendation_that_cannot_learn_leaves_the_others_their_turn(caplog: pytest.LogCaptureFixture) -> None:
    good = replace(AUTO, name="good", settings=replace(AUTO.settings, model=ModelName.SEASONAL))
    world = World(daily(AUTO, 3), is_choice_skipped=True)
    histories = (world.history, daily(good, 3))
    world.answers = {"linear": lambda _: 1 / 0}
    telemetry = LoadTelemetry(CollectorRegistry())
    learner = Learner(lambda: histories, DelayMeter(), world.book, world.run_child, telemetry, world.clocks.clock())
    learner.step()

    assert world.book.get(good) is not None
    assert world.book.get(AUTO) is None
    assert len(caplog.records) == 1


def test_a_process_that_ends_reports_no_failed_fit(caplog: pytest.LogCaptureFixture) -> None:
    children = Children(CollectorRegistry(), "t", most=1)
    children.close()
    history, book = daily(AUTO, 3), LearnedModels()
    telemetry = LoadTelemetry(CollectorRegistry())
    learner = Learner(lambda: (history,), DelayMeter(), book, children.run, telemetry, Clocks(END).clock())

    assert not learner.step()
    assert book.get(AUTO) is None
    assert caplog.records == []


def test_children_fit_what_a_process_of_its_own_can_load() -> None:
    children = Children(CollectorRegistry(), "t", most=1)
    configured = replace(AUTO, settings=replace(AUTO.settings, model=ModelName.SEASONAL))
    history, book = daily(configured, 3), LearnedModels()
    telemetry = LoadTelemetry(CollectorRegistry())
    Learner(lambda: (history,), DelayMeter(), book, children.run, telemetry, Clocks(END).clock()).step()

    learned = book.get(configured)
    assert learned is not None
    assert learned.problems == {}
    assert learned.verdicts[None].model == "seasonal"


@pytest.mark.parametrize(("recommendations", "seconds"), [(1, 600.0), (10, 600.0), (20, 1200.0), (1000, 3600.0)])
def test_few_recommendations_choose_their_models_more_often(recommendations: int, seconds: float) -> None:
    assert catch_up_seconds(recommendations) == seconds
