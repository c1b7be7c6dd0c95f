"""Room above the load is scaled to the cost of the bill."""

from __future__ import annotations

import numpy as np
import pytest

from recommender.kinds.predictive.choice.blend import Blend, Part, scaled_room
from recommender.kinds.predictive.choice.records import ModelRecord
from recommender.kinds.predictive.forecast import ForecastTask
from recommender.kinds.predictive.learning import SeriesVerdict
from recommender.running.loads.predictions.blending import ModelForecast, prediction_of

LOAD, UPPER = np.array([10.0, 80.0, 120.0, 50.0]), np.array([100.0, 100.0, 100.0, np.nan])


@pytest.mark.parametrize(
    ("model", "scale", "rooms"),
    [
        ("seasonal", 0.5, [45.0, 10.0, 0.0, 2.5]),
        ("seasonal", 2.0, [180.0, 40.0, 0.0, 10.0]),
        # As much as a lower or a higher quantile of the past asks for.
        ("percentile", 0.5, [40.0, 0.0, 0.0, 2.5]),
        ("percentile", 1.5, [140.0, 70.0, 30.0, 7.5]),
        ("percentile", 1.0, [90.0, 20.0, 0.0, 5.0]),
    ],
)
def test_a_scale_multiplies_the_room_of_a_model_and_shifts_a_percentile(
    model: str, scale: float, rooms: list[float]
) -> None:
    np.testing.assert_allclose(scaled_room(model, scale, LOAD, UPPER, 0.1), rooms)


@pytest.mark.parametrize(
    ("weights", "capacity"),
    [
        # Headroom of 20% on a load of 10, and the rooms of 90 and 45 above it.
        pytest.param((), 12.0, id="headroom alone"),
        pytest.param((0.5, 0.25), 10.0 + 0.25 * 2.0 + 0.5 * 90.0 + 0.25 * 45.0, id="headroom has what is left"),
        pytest.param((0.75, 0.25 + 1e-12), 10.0 + 0.75 * 90.0 + 0.25 * 45.0, id="models alone"),
    ],
)
def test_a_blend_requests_the_weighted_mean_of_the_rooms_of_its_parts(
    weights: tuple[float, ...], capacity: float
) -> None:
    uppers = {"seasonal": np.array([100.0]), "linear": np.array([55.0])}
    parts = tuple(Part(model, weight, 1.0) for model, weight in zip(uppers, weights, strict=False))
    assert Blend(0.2, parts).capacity(np.array([10.0]), uppers, 0.1).tolist() == pytest.approx([capacity])


@pytest.mark.parametrize("model", ["seasonal", "percentile"])
@pytest.mark.parametrize("scale", [0.4, 1.0, 1.7])
def test_a_poll_predicts_the_capacity_of_the_blend(model: str, scale: float) -> None:
    blend = Blend(0.2, (Part(model, 0.7, scale),))
    expected = blend.capacity(LOAD, {model: UPPER}, 0.1)
    verdict = SeriesVerdict(model, "it leads", blend)
    for load, upper, capacity in zip(LOAD.tolist(), UPPER.tolist(), expected.tolist(), strict=True):
        forecasts = {model: ModelForecast(upper, upper)}
        found = prediction_of(verdict, forecasts, None, load, ForecastTask(1200.0, 900.0), 0.0)
        assert found.load.predicted == pytest.approx(capacity)


@pytest.mark.parametrize(
    ("weights", "leader"),
    [
        ({}, "headroom"),
        ({"seasonal": 0.4}, "headroom"),
        ({"linear": 0.6, "seasonal": 0.3}, "linear"),
        ({"linear": 0.2, "seasonal": 0.45}, "seasonal"),
        ({"linear": 0.3, "trend": 0.3}, "headroom"),
    ],
)
def test_the_model_with_the_largest_weight_leads_or_headroom_with_what_the_models_leave(
    weights: dict[str, float], leader: str
) -> None:
    blend = Blend(0.2, tuple(Part(model, weight, 1.0) for model, weight in weights.items()))
    assert blend.leader == leader


def test_a_model_has_one_figure_for_how_often_and_how_much_it_is_short() -> None:
    record = ModelRecord("linear", 86_400.0, 0.5, 0.2, tau_under_versus_headroom=0.4, theta_under_versus_headroom=1.0)
    assert record.shortage_versus_headroom == pytest.approx(0.7)
