"""Lines and parabolas are fitted to recent samples."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.kinds.predictive.models.curves import LINE, LINEAR, PARABOLA, POLYNOMIAL, curves_at, curves_of_known
from tests.support.load import TASK, history_of

if TYPE_CHECKING:
    from recommender.kinds.predictive.forecast import Model

UNCAPPED = replace(TASK, max_growth=1e9)
STEPS = 60


@pytest.mark.parametrize(("look_ahead_seconds", "replicas"), [(0, 5), (10, 6)])
def test_a_line_gives_the_result_of_phpa(look_ahead_seconds: float, replicas: int) -> None:
    """The source is algorithms/linear_regression/test_linear_regression.py of predictive-horizontal-pod-autoscaler."""
    ages = np.array([0.0, 10.0, 20.0, 30.0]) - 39.0
    found = curves_at(ages, np.array([1.0, 2.0, 3.0, 4.0]), 1, np.array([look_ahead_seconds]))
    assert ceil(found[0]) == replicas


def test_a_parabola_gives_the_result_of_the_article_on_websockets() -> None:
    samples = np.array([1000.0, 1500.0, 2000.0, 2500.0, 3000.0])
    assert curves_at(np.arange(-40.0, 1.0, 10.0), samples, 2, np.array([60.0]))[0] == pytest.approx(6000, abs=1e-6)


@pytest.mark.parametrize("degree", [1, 2])
def test_both_implementations_agree_if_all_samples_are_known(degree: int) -> None:
    values = np.random.default_rng(3).uniform(10, 20, (4, 12))
    times, at = np.arange(-11.0, 1.0), np.array([1.0, 5.0])
    np.testing.assert_allclose(
        curves_of_known(times, values, degree, at), curves_at(times, values, degree, at), rtol=1e-9
    )


@given(
    start=st.floats(10, 1e6), slope=st.floats(-1e3, 1e3), bend=st.floats(-10, 10),
    step_seconds=st.sampled_from([10, 60, 300, 1800]),
    missing=st.sets(st.integers(1, STEPS - 2), max_size=8),
)  # fmt: skip
def test_load_on_a_line_or_parabola_is_forecast_exactly(
    start: float, slope: float, bend: float, step_seconds: float, missing: set[int]
) -> None:
    steps = np.arange(STEPS + 200.0)
    ahead = np.arange(
        UNCAPPED.lead_steps(step_seconds), UNCAPPED.lead_steps(step_seconds) + UNCAPPED.window_steps(step_seconds)
    )
    for model, options, bent in ((LINEAR, LINE, 0.0), (POLYNOMIAL, PARABOLA, bend)):
        used = options.sample_steps(UNCAPPED, step_seconds)
        curve = start + slope * (steps - STEPS) + bent * (steps - STEPS) ** 2
        curve += max(0.0, 10.0 - float(curve[:STEPS].min()))
        history = history_of(curve[:STEPS].copy(), step_seconds)
        history.values[0, sorted(missing)] = np.nan
        known = np.count_nonzero(~np.isnan(history.values[0, -used:]))
        found = model.forecast(None, history, np.array([STEPS - 1]), UNCAPPED).median[0, 0]
        if known < options.least_samples:
            assert np.isnan(found)
        else:
            expected = max(0.0, float(curve[STEPS - 1 + ahead].max()))
            assert found == pytest.approx(expected, rel=1e-6, abs=1e-6 * np.abs(curve).max())


@pytest.mark.parametrize(("max_growth", "limit"), [(None, 2.0), (1.5, 1.5)])
@pytest.mark.parametrize("model", [LINEAR, POLYNOMIAL], ids=lambda model: model.name)
def test_growth_is_limited_to_a_multiple_of_the_present_load(
    model: Model, max_growth: float | None, limit: float
) -> None:
    history = history_of(np.arange(1.0, 31.0))
    found = model.forecast(None, history, np.array([29]), replace(TASK, lead_seconds=12_000, max_growth=max_growth))
    assert found.median[0, 0] == found.upper[0, 0] == limit * 30.0


def test_noise_at_10_s_is_not_taken_for_growth() -> None:
    """With the article's five samples, 21,700 connections become a forecast of 45,680 connections for 120 s ahead."""
    noise = np.random.default_rng(5).normal(0, 200, 90)
    history = history_of(21_700 + noise, 10)
    found = POLYNOMIAL.forecast(None, history, np.arange(60, 90), replace(TASK, lead_seconds=120, window_seconds=60))
    assert np.nanmax(found.median) < 1.1 * 21_700


@pytest.mark.parametrize(
    ("step_seconds", "line", "parabola"), [(10, 238, 476), (60, 38, 76), (300, 6, 12), (1800, 5, 8)]
)
def test_samples_reach_back_by_time_and_by_least_count(step_seconds: float, line: int, parabola: int) -> None:
    assert (LINE.sample_steps(TASK, step_seconds), PARABOLA.sample_steps(TASK, step_seconds)) == (line, parabola)


@pytest.mark.parametrize(("model", "least"), [(LINEAR, 5), (POLYNOMIAL, 8)], ids=["linear", "polynomial"])
def test_with_too_few_samples_there_is_no_forecast(model: Model, least: int) -> None:
    found = model.forecast(None, history_of(np.full(20, 7.0)), np.arange(20), TASK).median[0]
    assert list(np.isnan(found)) == [True] * (least - 1) + [False] * (21 - least)
    gappy = np.full(40, 7.0)
    gappy[20:39] = np.nan
    after = model.forecast(None, history_of(gappy), np.array([39]), TASK)
    assert np.isnan(after.upper[0, 0])
