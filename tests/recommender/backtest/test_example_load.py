from __future__ import annotations

import numpy as np

from recommender.backtest.recorded.example_load import example_load

STEPS_A_DAY = 288


def test_the_example_is_the_same_each_time() -> None:
    first, second = example_load(), example_load()
    assert first.times.tolist() == second.times.tolist()
    assert first.values.tolist() == second.values.tolist()
    assert np.all(np.diff(first.times) == 300)
    assert first.values.min() > 0


def test_the_example_has_a_season_growth_and_a_spike() -> None:
    days = example_load().values.reshape(-1, STEPS_A_DAY)
    hourly = days.reshape(len(days), 24, -1).mean(axis=2)
    evening, night = hourly[:, 18:20].mean(axis=1), hourly[:, 1:4].mean(axis=1)
    assert np.all(evening > 3 * night)
    working, weekend = evening.reshape(2, 7)[:, :5], evening.reshape(2, 7)[:, 5:]
    assert np.all(weekend.max(axis=1) < working.min(axis=1))
    assert np.all(evening[7:] > evening[:7])
    peaks = days.max(axis=1)
    assert np.argmax(peaks) == 10
    assert peaks[10] > 1.3 * np.delete(peaks, 10).max()
