"""predicted-load-packing is target-load-packing by the predicted next hour, and equal to it without a prediction."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from adapter.nodes.model.scheduling_settings import TargetLoadPackingArgs
from adapter.nodes.model.week import FORECAST_VERDICTS, ForecastVerdict, HourForecast
from adapter.nodes.scores.loads import predicted_load_packing, target_load_packing
from tests.adapter.nodes.scores.builder import CPU, Node, columns, listed, pod, rows

if TYPE_CHECKING:
    from adapter.nodes.model.columns import NodeColumns

NAN = float("nan")
CAPACITY = {"cpu": 10_000}
ARGS = TargetLoadPackingArgs(default_requests_cpu_milli=0)


def nodes(*loads: float, forecast: HourForecast | None = None) -> NodeColumns:
    found = columns(*(Node(f"n{row}", CAPACITY, mean={CPU: load}) for row, load in enumerate(loads)))
    return replace(found, forecast=forecast)


def forecast_of(*nodes: tuple[ForecastVerdict, float]) -> HourForecast:
    verdicts = np.array([FORECAST_VERDICTS.index(verdict) for verdict, _ in nodes], dtype=np.int8)
    return HourForecast(np.array([ratio for _, ratio in nodes]), verdicts)


def test_a_node_that_stays_quiet_is_preferred_to_one_that_is_only_quiet_now() -> None:
    by_hour = nodes(0.3, 0.2, forecast=forecast_of((ForecastVerdict.PREDICTED, 0.9), (ForecastVerdict.PREDICTED, 0.2)))
    quiet_now, stays_quiet = listed(predicted_load_packing.score(pod(), by_hour, rows(2), ARGS))
    assert (quiet_now, stays_quiet) == (7.0, 70.0)
    assert listed(target_load_packing.score(pod(), by_hour, rows(2), ARGS)) == [85.0, 70.0]


@pytest.mark.parametrize("verdict", [one for one in ForecastVerdict if one is not ForecastVerdict.PREDICTED])
def test_without_a_prediction_scores_use_the_last_15_minutes_and_the_reason_says_so(verdict: ForecastVerdict) -> None:
    found = nodes(0.1, 0.39, 0.7, NAN, forecast=forecast_of(*[(verdict, NAN)] * 4))
    ours = predicted_load_packing.score(pod({"cpu": 400}), found, rows(4), ARGS)
    assert listed(ours) == listed(target_load_packing.score(pod({"cpu": 400}), found, rows(4), ARGS))
    assert ours.reason(0).startswith("the last 15 minutes count, since ")
    assert "no history of the node" not in ours.reason(0)
    assert ours.reason(3) == "the node has no CPU metrics"


def test_without_any_history_scores_are_those_of_the_last_15_minutes() -> None:
    ours = predicted_load_packing.score(pod(), nodes(0.1, 0.6), rows(2), ARGS)
    assert listed(ours) == listed(target_load_packing.score(pod(), nodes(0.1, 0.6), rows(2), ARGS))
    assert "no history of the node is known yet" in ours.reason(0)


def test_the_reason_names_both_loads() -> None:
    found = nodes(0.2, forecast=forecast_of((ForecastVerdict.PREDICTED, 0.7)))
    assert predicted_load_packing.score(pod(), found, rows(1), ARGS).reason(0) == (
        "up to 70% is expected within the hour, 20% is in use now; CPU is at 70% and is predicted at 70% with 0m "
        "of this and recent pods; the target is 40%"
    )
