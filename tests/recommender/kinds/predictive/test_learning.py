"""A trial continues with later samples, and what a child process returns of it stays small."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from recommender.kinds.predictive.history import LoadHistory
from recommender.kinds.predictive.learning import (
    JudgingTerms,
    ModelTrial,
    caught_up,
    continued_trial,
    forecasts_since,
    trial_of,
    verdicts,
)
from recommender.kinds.predictive.predictive_settings import ModelName
from recommender.kinds.predictive.simulation.serving import FleetSettings
from tests.support.load import TASK

STEP_SECONDS = 600.0
FLEET = FleetSettings(STEP_SECONDS, 180.0, 100.0)


def load(days: float, series: int = 2) -> LoadHistory:
    """Return loads with a daily cycle and noise; a longer history begins as a shorter one does."""
    day = np.arange(10 * 144)[: round(days * 144)] / 144
    noise = np.random.default_rng(4).normal(0, 30, (series, 10 * 144))[:, : len(day)]
    return LoadHistory(1_700_000_400.0, STEP_SECONDS, 1000 + 400 * np.sin(2 * np.pi * day) + noise)


@pytest.mark.parametrize("days", [4.0, 9.0])
def test_a_continued_trial_equals_a_trial_of_the_longer_history(days: float) -> None:
    before, now = load(days), load(days + 0.5)
    first = trial_of(ModelName.LARGEST_HOUR, before, TASK)
    found = continued_trial(first, forecasts_since(first, now, TASK), now)
    expected = trial_of(ModelName.LARGEST_HOUR, now, TASK)
    assert found.first == expected.first
    np.testing.assert_allclose(found.upper[:, 144:], expected.upper[:, 144:])
    assert continued_trial(found, forecasts_since(found, now, TASK), now) is found


def test_the_result_of_trials_does_not_grow_with_the_history() -> None:
    sizes = []
    for days in (4.0, 8.0):
        history = load(days)
        trials = [trial_of(name, history, TASK) for name in (ModelName.LARGEST_HOUR, ModelName.LINEAR)]
        since, verdicts = caught_up(JudgingTerms(ModelName.AUTO, TASK, FLEET), history, trials)
        assert [part.shape for part in since] == [(2, 0), (2, 0)]
        assert len(verdicts) == 2
        sizes.append(len(pickle.dumps((since, verdicts))))
    assert max(sizes) < 2 * min(sizes) < load(4.0).values.nbytes


def test_the_record_of_a_configured_model_respects_its_maximum_growth() -> None:
    history = load(4.0, series=1)
    soaring = ModelTrial("holt-winters", None, history.first, 3 * history.values)
    for written, most in ((None, 2.0), (1.5, 1.5), (3.0, 3.0)):
        terms = JudgingTerms(ModelName.HOLT_WINTERS, replace(TASK, max_growth=written), FLEET)
        (verdict,) = verdicts(terms, history, [soaring])
        assert verdict.bill is not None
        assert verdict.bill.as_headroom_ratio == pytest.approx(most - 1, abs=0.02)
