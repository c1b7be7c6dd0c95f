from __future__ import annotations

import numpy as np
import pytest

from recommender.kinds.predictive.forecast import ForecastTask, Model
from recommender.kinds.predictive.history import LoadHistory
from recommender.kinds.predictive.models.boosted import BOOSTED
from recommender.kinds.predictive.models.conformal import CONFORMAL
from recommender.kinds.predictive.models.features import StepRange, features, levels
from recommender.kinds.predictive.models.quantile import QUANTILE
from tests.recommender.kinds.predictive.waves import DAY_STEPS, bursts_every_day, with_values

TASK = ForecastTask(lead_seconds=1200.0, window_seconds=900.0)
VALUES = np.array([[4.0, np.nan, 1.0, 3.0, 9.0, 2.0]])


def window(end: int, steps: int) -> np.ndarray:
    """Return the existing values of a window that ends at a step."""
    return VALUES[0, max(0, end - steps + 1) : max(0, end + 1)]


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("first", [0, 2, 5])
def test_windows_that_end_at_each_step_have_correct_statistics(first: int, steps: int) -> None:
    found = StepRange(VALUES, first, 5)
    ends = range(first, 6)
    known = [each[~np.isnan(each)] for each in (window(end, steps) for end in ends)]
    np.testing.assert_allclose(found.mean(steps)[0], [each.mean() if each.size else np.nan for each in known])
    np.testing.assert_allclose(found.maximum(steps)[0], [each.max() if each.size else np.nan for each in known])
    np.testing.assert_allclose(
        found.deviation(steps)[0], [each.std() if each.size else np.nan for each in known], atol=1e-7
    )


def test_a_range_before_the_history_is_unknown() -> None:
    found = StepRange(VALUES, 2, 4).back(10)
    assert np.isnan(found.mean(2)).all()
    assert np.isnan(found.maximum(2)).all()


def test_a_range_that_begins_after_the_history_is_unknown() -> None:
    assert np.isnan(StepRange(VALUES, 2, 4).back(-10).maximum(3)).all()


def test_each_feature_is_the_same_for_any_range_of_origins() -> None:
    history = bursts_every_day(9)
    last = history.steps - 1
    every = features(history, 8 * DAY_STEPS, last, TASK)
    alone = features(history, last, last, TASK)
    np.testing.assert_array_equal(every[:, -1], alone[:, 0])


def test_an_outlier_is_the_same_for_any_range_of_origins() -> None:
    # The days before the outlier, with which it is compared, lie before the week of the last origin.
    history = bursts_every_day(18)
    values = history.values.copy()
    values[:, 11 * DAY_STEPS + 20] *= 40_000
    wrong, last = with_values(history, values), history.steps - 1
    every, alone = (levels(wrong, first, last).floor[:, -1] for first in (0, last))
    np.testing.assert_allclose(every, alone, rtol=1e-12)
    assert alone[0] < 3.5 * levels(history, last, last).floor[0, 0]


def test_no_feature_depends_on_a_step_after_its_origin() -> None:
    history = bursts_every_day(9)
    origin = 8 * DAY_STEPS + 7
    values = history.values.copy()
    values[:, origin + 1 :] = 1e9
    clean, poisoned = (features(each, origin, origin, TASK) for each in (history, with_values(history, values)))
    np.testing.assert_array_equal(clean, poisoned)


def test_features_do_not_depend_on_the_unit_of_the_load() -> None:
    history = bursts_every_day(9)
    clean = features(history, 8 * DAY_STEPS, history.steps - 1, TASK)
    large = features(with_values(history, history.values * 4096), 8 * DAY_STEPS, history.steps - 1, TASK)
    np.testing.assert_allclose(clean, large, atol=2e-6)


def test_after_a_silence_ratios_are_relative_to_the_noise_of_the_week() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(100.0, 5.0, (1, 400))
    values[:, 300:] = 0.0
    found = levels(LoadHistory(0.0, 600.0, values), 399, 399)
    assert found.load[0, 0] == pytest.approx(0.0, abs=1e-9)
    assert 2.0 < found.floor[0, 0] < 10.0
    opening = found.log_ratio(np.array([[100.0]]))
    assert opening[0, 0] < np.log(100)
    np.testing.assert_allclose(found.load_of(opening), 100.0)


def test_a_constant_load_has_a_floor_of_one_percent() -> None:
    found = levels(LoadHistory(0.0, 600.0, np.full((1, 200), 100.0)), 150, 150)
    np.testing.assert_allclose((found.load, found.floor), ([[100.0]], [[1.0]]))


def test_there_is_no_level_in_a_gap() -> None:
    values = np.full((1, 20), 100.0)
    values[:, 15:] = np.nan
    assert np.isnan(levels(LoadHistory(0.0, 600.0, values), 16, 19).load).all()


@pytest.mark.parametrize("hours", [1, 30, 100])
def test_one_wrong_sample_does_not_make_the_whole_week_unsteady(hours: int) -> None:
    # As after a counter whose whole value was taken for the increase of a minute.
    history = bursts_every_day(9)
    last = history.steps - 1
    values = history.values.copy()
    values[:, last - hours * 6] *= 40_000
    clean, wrong = (levels(each, last, last).floor[0, 0] for each in (history, with_values(history, values)))
    assert clean <= wrong < 3.5 * clean


def test_a_wrong_sample_after_an_outage_does_not_make_the_week_unsteady() -> None:
    """The days before the outage are the usual ones."""
    history = bursts_every_day(16)
    last = history.steps - 1
    values = history.values.copy()
    values[:, 9 * DAY_STEPS : 14 * DAY_STEPS] = np.nan
    clean = levels(with_values(history, values), last, last).floor[0, 0]
    values[:, 14 * DAY_STEPS + 20] *= 40_000
    assert clean <= levels(with_values(history, values), last, last).floor[0, 0] < 10 * clean


def test_days_without_load_do_not_hide_how_the_others_move() -> None:
    values = bursts_every_day(9).values.copy()
    values[:, : 7 * DAY_STEPS] = 0.0
    found = levels(with_values(bursts_every_day(9), values), 9 * DAY_STEPS - 1, 9 * DAY_STEPS - 1)
    assert found.floor[0, 0] == pytest.approx(np.abs(np.diff(values[0, -7 * DAY_STEPS - 1 :])).mean())


@pytest.mark.parametrize("model", [CONFORMAL, QUANTILE, BOOSTED], ids=lambda model: model.name)
def test_one_wrong_sample_does_not_multiply_the_forecasts_of_the_days_after_it(model: Model) -> None:
    history = bursts_every_day(16)
    wrong = 14 * DAY_STEPS + 20
    values = history.values.copy()
    values[:, wrong] *= 40_000
    parameters = model.fit(history.until(14 * DAY_STEPS), TASK)
    # The first hours, in which windows of the models contain the sample itself, are left out.
    origins = np.arange(wrong + DAY_STEPS // 2, wrong + DAY_STEPS - 12)
    usual, found = (
        model.forecast(parameters, each, origins, TASK).upper[0] for each in (history, with_values(history, values))
    )
    assert np.median(found / usual) < 1.5
