from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from recommender.backtest.backtest import default_load_per_replica
from recommender.backtest.options import BacktestOptions
from recommender.backtest.report import Actuator
from recommender.backtest.reports.document import backtest_document
from recommender.backtest.reports.table import report_text, sentence
from recommender.kinds.predictive.forecast import Forecasts, ForecastTask, Model, no_fit
from recommender.kinds.predictive.models.load_at_origin import limit_growth
from recommender.kinds.predictive.predictive_settings import PredictiveSettings
from recommender.kinds.predictive.simulation.frontier import ONLY_THE_POLICY
from tests.recommender.backtest.replays import BUDGETS, FEW, LIGHT, ONE_BUDGET, daily_load, replayed

if TYPE_CHECKING:
    from recommender.backtest.report import BacktestReport
    from recommender.kinds.predictive.arrays import FloatArray, IntArray
    from recommender.kinds.predictive.history import LoadHistory


@pytest.fixture(autouse=True)
def _one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use one budget; other tests are about budgets."""
    monkeypatch.setattr(BUDGETS, ONE_BUDGET)


SHORT = {"one row": [5.0], "two rows": [5.0, 5.0], "zeros": [0.0] * 50, "constant": [7.0] * 50}


@pytest.mark.parametrize("actuator", Actuator)
@pytest.mark.parametrize("load", SHORT.values(), ids=SHORT)
def test_every_load_has_a_verdict(load: list[float], actuator: Actuator) -> None:
    report = replayed(load, BacktestOptions(actuator=actuator))
    assert report.verdict.use == "headroom"
    assert report.trace.judged_steps == len(load) - len(load) // 2
    assert report.policy("model:auto").comparison.tau_under_versus_headroom is None
    assert "neither is ever short" in report_text(report)
    backtest_document(report)


@pytest.mark.parametrize(
    ("often", "much", "words"),
    [
        (0.28, 0.31, "runs short 72% less often, and by 69% less."),
        (0.004, 0.5, "runs short 99.6% less often, and by 50% less."),
        (1.12, 2.5, "runs short 12% more often, and by 2.5 times as much."),
        (None, 0.9, "runs short just as often, and by 10% less."),
        (0.0, 0.0, "and it is never short, unlike that headroom."),
        (1.0, 1.0, "and is short as often and by as much as that headroom."),
    ],
)
def test_the_verdict_compares_shortages_in_percent(often: float | None, much: float, words: str) -> None:
    report = replayed(SHORT["constant"])
    auto = report.policy("model:auto")
    comparison = replace(auto.comparison, tau_under_versus_headroom=often, theta_under_versus_headroom=much)
    assert sentence(replace(report, policies=(replace(auto, comparison=comparison),))).endswith(words)


@pytest.mark.parametrize(
    ("often", "much", "words"),
    [
        (0.0, 0.0, "Use model: auto, which was plain headroom for most of this load. "),
        (0.6, 0.9, "Use model: auto, which was plain headroom for most of this load. "),
        (0.6, 1.2, "Use plain headroom: no model proved better for most of this load. "),
        (0.999, 0.6, "Use plain headroom: no model proved better for most of this load. "),
        (None, 0.6, "Use plain headroom: no model proved better for most of this load. "),
    ],
)
def test_headroom_is_not_recommended_if_auto_was_better(often: float | None, much: float, words: str) -> None:
    """`auto` may be headroom for most of the time, and short less often than headroom of the same cost over all."""
    report = replayed(SHORT["constant"])
    assert report.verdict.use == "headroom"
    auto = report.policy("model:auto")
    comparison = replace(auto.comparison, tau_under_versus_headroom=often, theta_under_versus_headroom=much)
    assert sentence(replace(report, policies=(replace(auto, comparison=comparison),))).startswith(words)


@pytest.mark.parametrize(
    ("often", "much", "words"),
    [
        (1.13, 1.2, "Use plain headroom: model:auto, which ran quantile most, was short more. "),
        (1.0, 1.3, "Use plain headroom: model:auto, which ran quantile most, was short more. "),
        (ONLY_THE_POLICY, ONLY_THE_POLICY, "Use plain headroom: model:auto, which ran quantile most, was short more. "),
        (0.9, 1.2, "Use model: auto, which ran quantile most. "),
        (1.0, 1.0, "Use model: auto, which ran quantile most. "),
        (None, None, "Use model: auto, which ran quantile most. "),
    ],
)
def test_auto_is_not_advised_where_it_was_worse_than_headroom(
    often: float | None, much: float | None, words: str
) -> None:
    """Over a week or less, models may lead for most of the time and lose against headroom of the same cost."""
    report = replayed(SHORT["constant"])
    auto = report.policy("model:auto")
    comparison = replace(auto.comparison, tau_under_versus_headroom=often, theta_under_versus_headroom=much)
    changed = replace(
        report,
        verdict=replace(report.verdict, use="model:quantile"),
        policies=(replace(auto, comparison=comparison),),
    )
    assert sentence(changed).startswith(words)


def test_models_with_too_little_history_are_left_out_with_a_note() -> None:
    report = replayed(daily_load(352, 10.0), step_seconds=10.0)
    assert [policy.name for policy in report.policies] == [
        "headroom:10%",
        "hpa",
        "model:reactive",
        "model:headroom",
        "model:linear",
        "model:polynomial",
        "model:auto",
    ]
    assert any("seasonal does not take part: it needs 2 days of history, and" in note for note in report.notes)


def test_models_that_need_more_than_the_configured_history_are_left_out_as_in_run() -> None:
    settings = PredictiveSettings(history_seconds=36 * 3600.0)
    report = replayed(daily_load(4 * 144), BacktestOptions(settings=settings))
    assert "model:percentile" in [policy.name for policy in report.policies]
    assert "model:seasonal" not in [policy.name for policy in report.policies]
    assert "seasonal does not take part: it needs 2 days of history, and `history` is 1.5 days" in report.notes


@pytest.mark.parametrize(
    ("settings", "history"),
    [
        (PredictiveSettings(history_seconds=2 * 86_400.0), "2d"),
        (PredictiveSettings(history_seconds=4 * 86_400.0), ""),
        (PredictiveSettings(history_seconds=3 * 86_400.0, season_seconds=2 * 3600.0), "3d"),
    ],
)
def test_a_note_says_how_much_history_each_forecast_uses(settings: PredictiveSettings, history: str) -> None:
    report = replayed(daily_load(4 * 144), BacktestOptions(settings=settings), models=FEW)
    notes = [note for note in report.notes if "`history`" in note]
    note = f"Each forecast uses the {history} before it, as in `run`: `history` changes it."
    assert notes == ([note] if history else [])


@pytest.mark.parametrize(("days", "warm_up_days"), [(20, 8), (10, 5), (1, 0.5)])
def test_the_warm_up_is_at_most_half_of_the_trace(days: int, warm_up_days: float) -> None:
    report = replayed(daily_load(days * 24, 3600.0), step_seconds=3600.0, models=FEW)
    assert report.trace.warm_up_seconds == warm_up_days * 86_400
    assert report.trace.judged_steps == days * 24 - warm_up_days * 24


def test_gaps_are_not_judged_and_capacity_is_held_over_them() -> None:
    load = daily_load(600)
    load[400:430] = math.nan
    report = replayed(load, models=FEW)
    assert report.trace.judged_steps == 300 - 30
    requested = report.policy("headroom:10%").fleet.asked
    assert set(requested[400:430]) == {requested[399]}


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        ([100.0] * 10, 5.0),
        ([0.0] * 999 + [40.0], 2.0),
        ([0.0, math.nan], 1.0),
        # A twentieth of these would be 0, or have a digit or two.
        ([5e-324] * 10, 1.0),
        ([0.0] * 999 + [3e-308], 1.0),
    ],
)
def test_the_default_scale_is_above_zero(load: list[float], expected: float) -> None:
    assert default_load_per_replica(np.array(load)) == expected


def test_a_load_of_denormal_size_is_replayed_like_an_idle_one(recwarn: pytest.WarningsRecorder) -> None:
    report = replayed(daily_load(240) * 1e-323, models=FEW)
    assert {policy.measures.tau_under_percent for policy in report.policies} == {0.0}
    assert report.verdict.cost_above_load_ratio is None
    assert list(recwarn) == []


def with_poison(actuator: Actuator, at: int) -> tuple[BacktestReport, BacktestReport]:
    """Return the reports of a load and of one that differs from `at` on, with the same scale."""
    # Through an HPA each step takes forty looks: a shorter load with fewer models is enough for its own part.
    scale = actuator is Actuator.SCALE
    load, models = daily_load(24 * 6 * 5)[-(at + 100) :], LIGHT if scale else FEW
    poisoned = load.copy()
    poisoned[at:] = 5000 + 1000 * np.sin(np.arange(len(load) - at))
    options = BacktestOptions(actuator=actuator, load_per_replica=20.0)
    return replayed(load, options, models=models), replayed(poisoned, options, models=models)


@pytest.mark.parametrize("actuator", Actuator)
def test_nothing_after_now_reaches_a_decision(actuator: Actuator) -> None:
    at = 24 * 6 * 4 + 50 if actuator is Actuator.SCALE else 80
    clean, poisoned = with_poison(actuator, at)
    assert [each.name for each in clean.policies] == [each.name for each in poisoned.policies]
    for before, after in zip(clean.policies, poisoned.policies, strict=True):
        np.testing.assert_array_equal(before.fleet.asked[:at], after.fleet.asked[:at], err_msg=before.name)
        np.testing.assert_array_equal(before.fleet.serving[:at], after.fleet.serving[:at], err_msg=before.name)
        assert not np.array_equal(before.fleet.asked[at:], after.fleet.asked[at:]), before.name


def test_a_perfect_forecast_beats_headroom_and_is_best_in_hindsight() -> None:
    load = daily_load(24 * 6 * 6)

    def prophecy(_none: object, _history: LoadHistory, origins: IntArray, _task: ForecastTask) -> Forecasts:
        ahead = np.array([load[at : at + 6].max() for at in origins])[np.newaxis, :]
        return Forecasts(ahead, ahead)

    # It sees the future, as no model can: the closure holds the whole load.
    prophet = Model("prophet", 0.0, lambda _history, _task: 1, prophecy)
    options = BacktestOptions(PredictiveSettings(), startup_seconds=1800.0)
    report = replayed(load, options, models=[*LIGHT, prophet])
    versus = report.policy("model:prophet").comparison.tau_under_versus_headroom
    assert versus is not None
    assert versus < 0.5
    assert report.verdict.best == "model:prophet"
    assert report.verdict.use == "model:prophet"


def test_the_best_in_hindsight_has_the_same_limits_as_auto() -> None:
    """Its room is scaled to the cost of auto, but not beyond what a forecast may request."""
    hours = np.arange(24 * 6 * 4)
    load = 100.0 + hours / 10
    load[hours % 36 == 35] *= 1.5 + hours[hours % 36 == 35] / 1000

    def prophecy(_none: object, history: LoadHistory, origins: IntArray, task: ForecastTask) -> Forecasts:
        ahead = np.array([load[at : at + 4].max() for at in origins])[np.newaxis, :]
        return limit_growth(Forecasts(ahead, ahead), history, origins, task.max_growth, task.lead_seconds)

    prophet = Model("prophet", 0.0, no_fit, prophecy)
    options = BacktestOptions(PredictiveSettings(max_growth=1.1), startup_seconds=600.0, load_per_replica=1.0)
    regret = replayed(load, options, models=[*FEW, prophet]).verdict.regret
    assert regret is not None
    # It saves what headroom spends between the peaks, and covers no peak.
    assert 0.9 < regret.best_shortage < 1.0


def test_a_fit_that_fails_keeps_the_last_parameters_and_is_counted() -> None:
    broken = Model("broken", 86_400.0, failing_fit, present, is_heavy=True)
    report = replayed(daily_load(24 * 2, 3600.0), step_seconds=3600.0, models=[*FEW, broken])
    assert any("broken does not take part: none of its fits succeeded" in note for note in report.notes)


def test_a_child_process_fits_only_to_the_configured_history() -> None:
    """A child makes several fits in a row, and some of them later than the history reaches back."""
    measuring = Model("measuring", 86_400.0, mean_of_past, promised, is_heavy=True)
    load = np.arange(24.0 * 20)
    settings = PredictiveSettings(history_seconds=5 * 86_400.0, max_over_history=100.0, max_growth=100.0)
    report = replayed(load, BacktestOptions(settings), step_seconds=3600.0, models=[*FEW, measuring])
    policy = report.policy("model:measuring")
    assert policy.predicted is not None
    assert policy.fits.done == len(range(24, 480, 48))
    for start in range(24, 480, 48):
        kept = load[max(0, start - 120) : start]
        assert policy.predicted[start] == 10 * load[start] + kept.mean()


def mean_of_past(history: LoadHistory, _task: ForecastTask) -> float:
    return float(history.values.mean())


def promised(parameters: float, history: LoadHistory, origins: IntArray, _task: ForecastTask) -> Forecasts:
    found: FloatArray = 10 * history.values[:, origins] + parameters
    return Forecasts(found, found)


def failing_fit(_history: LoadHistory, _task: ForecastTask) -> object:
    raise ValueError("no fit")


def present(_parameters: object, history: LoadHistory, origins: IntArray, _task: ForecastTask) -> Forecasts:
    found: FloatArray = history.values[:, origins]
    return Forecasts(found, found)


@pytest.mark.parametrize(
    ("name", "written", "most"), [("holt-winters", None, 2.0), ("seasonal", None, 3.0), ("seasonal", 1.2, 1.2)]
)
def test_a_model_grows_as_far_as_its_configuration_allows(name: str, written: float | None, most: float) -> None:
    """By default, `maxGrowth` limits models that follow a trend, but not those that `auto` mixes."""

    def soaring(_none: object, history: LoadHistory, origins: IntArray, _task: ForecastTask) -> Forecasts:
        found: FloatArray = 3 * history.values[:, origins]
        return Forecasts(found, found)

    settings = PredictiveSettings(max_growth=written, max_over_history=100.0)
    model = Model(name, 0.0, no_fit, soaring)
    report = replayed(daily_load(300), BacktestOptions(settings), models=[*FEW, model])
    predicted = report.policy(f"model:{name}").predicted
    assert predicted is not None
    # Plain headroom acts before the first forecast.
    np.testing.assert_allclose(predicted[1:] / report.load[1:], most)


def test_configured_limits_are_respected() -> None:
    settings = PredictiveSettings(min_replicas=3, max_replicas=6, headroom_ratio=0.25)
    report = replayed(daily_load(300), replace(BacktestOptions(), settings=settings))
    assert report.policies[0].name == "headroom:25%"
    for policy in report.policies:
        assert policy.fleet.asked.min() >= 3
        assert policy.fleet.asked.max() <= 6
