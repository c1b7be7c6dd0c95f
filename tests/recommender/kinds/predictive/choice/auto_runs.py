"""Runs of the automatic choice among models, and what they are compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recommender.kinds.predictive.choice.auto import run_auto
from recommender.kinds.predictive.forecast import Forecasts, ForecastTask
from recommender.kinds.predictive.history import DAY_SECONDS, LoadHistory
from recommender.kinds.predictive.models.boosting import targets
from recommender.kinds.predictive.rolling_forecasts import RollingOptions
from recommender.kinds.predictive.simulation.frontier import compare, frontier
from recommender.kinds.predictive.simulation.measures import JudgedLoad, measure
from recommender.kinds.predictive.simulation.serving import FleetSettings, desired_replicas, simulate
from tests.recommender.kinds.predictive.waves import DAY_STEPS, STEP_SECONDS, with_values

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.kinds.predictive.choice.records import AutoRun
    from recommender.kinds.predictive.simulation.frontier import Comparison

TASK = ForecastTask(lead_seconds=1200.0, window_seconds=900.0)
FLEET = FleetSettings(STEP_SECONDS, startup_seconds=600.0, load_per_replica=20.0)
RARE_FITS = RollingOptions(refit_seconds=3 * DAY_SECONDS)
HEADROOM_RATIO = TASK.headroom_ratio


def of_yesterday(history: LoadHistory, room: float = 1.1) -> Forecasts:
    """Return yesterday's targets with some room as forecasts, which are right while all days are alike."""
    target = targets(history, TASK)
    found = np.full_like(target, np.nan)
    found[:, 2 * DAY_STEPS :] = target[:, DAY_STEPS:-DAY_STEPS] * room
    return Forecasts(found / room, found)


def run(history: LoadHistory, forecasts: Forecasts | None = None) -> AutoRun:
    return run_auto(history, {"seasonal": forecasts or of_yesterday(history)}, TASK, FLEET)


def together(*histories: LoadHistory) -> LoadHistory:
    """Return the loads as series of one history: their choices take hardly more time than those of one load."""
    return with_values(histories[0], np.concatenate([each.values for each in histories]))


def versus_headroom(capacity: FloatArray, history: LoadHistory, first_day: int, series: int = 0) -> Comparison:
    judged = JudgedLoad(history.values[series], np.arange(history.steps) >= first_day * DAY_STEPS, FLEET)
    found = measure(judged, simulate(desired_replicas(capacity, FLEET.load_per_replica), FLEET))
    return compare(found, frontier(judged, found.replica_hours))
