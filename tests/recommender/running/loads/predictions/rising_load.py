"""The history of a rising load, and its prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.running.loads.histories.load_histories import TargetHistory
from recommender.running.loads.learned.model_choices import LearnedModels
from recommender.running.loads.predictions.delay_measurement import DelayMeter
from recommender.running.loads.predictions.predicting import Predictor

if TYPE_CHECKING:
    from recommender.decisions.loads.prediction import Prediction
    from recommender.running.loads.histories.target_loads import Target
    from recommender.running.loads.load_needs import LoadNeed

START = 1_700_000_000.0
STEP = 10.0


def rising(wanted: LoadNeed, minutes: int = 30, targets: tuple[Target, ...] = (None,)) -> tuple[TargetHistory, float]:
    """Return a history of a load that rises by one per second, and its end."""
    history = TargetHistory(wanted, len(targets))
    for poll in range(minutes * 6):
        history.note(dict.fromkeys(targets, 1000.0 + poll * STEP), START + poll * STEP)
    return history, START + minutes * 60.0


def predicted(wanted: LoadNeed, learned_models: LearnedModels | None = None, load: float = 2800.0) -> Prediction:
    history, now = rising(wanted)
    return Predictor(learned_models or LearnedModels()).predictions(
        wanted, DelayMeter().delays(wanted), history, {None: load}, now
    )[None]
