from __future__ import annotations

import pytest

from recommender.kinds.predictive.predictive_settings import PredictiveSettings
from recommender.kinds.predictive.tasks import task_for


@pytest.mark.parametrize(
    ("startup_seconds", "step_seconds", "lead_steps", "window_steps"),
    [(180.0, 60.0, 4, 6), (600.0, 60.0, 11, 6), (300.0, 300.0, 2, 2), (1800.0, 1800.0, 2, 2), (90.0, 10.0, 10, 31)],
)
def test_lead_and_window_follow_from_the_fleet(
    startup_seconds: float, step_seconds: float, lead_steps: int, window_steps: int
) -> None:
    task = task_for(startup_seconds, step_seconds, PredictiveSettings())
    assert task.lead_steps(step_seconds) == lead_steps
    assert task.window_steps(step_seconds) == window_steps


def test_the_user_chooses_the_quantile_the_headroom_and_the_growth() -> None:
    task = task_for(60.0, 60.0, PredictiveSettings(quantile=0.9, headroom_ratio=0.2, max_growth=1.5))
    assert (task.quantile, task.headroom_ratio, task.max_growth) == (0.9, 0.2, 1.5)
